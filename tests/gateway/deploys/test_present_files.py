"""Which files need no upload."""

from __future__ import annotations

from pilotlight_core.host.blobs import BlobInfo
from pilotlight_gateway.deploys.present_files import TRUSTED_S, files_in_service, missing_files
from tests.gateway.world import World, entry, function

AT = 1_000_000.0


def test_what_is_stored_and_stays_needs_no_upload() -> None:
    """What is old and in service stays; what is old otherwise may be about to be deleted."""
    info = {
        name: BlobInfo("acme", name, 1, at)
        for name, at in (("young", AT - TRUSTED_S + 1), ("old", AT - TRUSTED_S - 1), ("served", 0.0))
    }

    assert missing_files(["young", "old", "served", "none"], info, frozenset({"served"}), AT) == ("old", "none")


async def test_the_files_in_service_are_those_of_the_apps_present_versions(world: World) -> None:
    """Without an app, or without its manifest, there are none."""
    assert await files_in_service(world.registry, world.blobs, None) == frozenset()
    world.deploy(function())
    assert await files_in_service(world.registry, world.blobs, world.registry.apps["acme", "shop"]) == frozenset()


async def test_a_file_that_nothing_has_needed_for_long_is_uploaded_again(world: World) -> None:
    """A second deploy of the same app needs no upload, however old its files are."""
    from tests.gateway.http.endpoints.test_apps import DEPLOYS, deploy_body

    digest = entry(b"print()").sha256
    await world.blobs.put("acme", digest, b"print()")
    world.blobs.at["acme", digest] = 0.0
    async with world.client() as client:
        assert (await client.post(DEPLOYS, content=deploy_body())).json()["missing"] == [digest]
        await client.put(f"/v1/blobs/{digest}", content=b"print()")
        assert (await client.post(DEPLOYS, content=deploy_body())).json()["missing"] == []

        world.blobs.at["acme", digest] = 0.0
        assert (await client.post(DEPLOYS, content=deploy_body(message="again"))).json()["missing"] == []
