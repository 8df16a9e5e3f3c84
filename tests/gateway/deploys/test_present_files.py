"""Which files need no upload."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from pilotlight_core.host.blobs import BlobInfo, BlobsDown, MemoryBlobs
from pilotlight_gateway.deploys import present_files
from pilotlight_gateway.deploys.present_files import TRUSTED_S, files_in_service, staying_files
from tests.gateway.world import World, entry, function

AT = 1_000_000.0


class SweptBlobs(MemoryBlobs):
    """A sweep deletes what is `doomed`: `before` it is renewed, or after."""

    def __init__(self, *, before: bool) -> None:
        super().__init__(lambda: AT)
        self.before = before
        self.doomed = ""

    async def renew(self, tenant: str, sha256: str) -> bool:
        if self.before and sha256 == self.doomed:
            await self.delete(tenant, sha256)
        found = await super().renew(tenant, sha256)
        if sha256 == self.doomed:
            await self.delete(tenant, sha256)
        return found


async def put(blobs: MemoryBlobs, content: bytes, at: float) -> BlobInfo:
    digest = hashlib.sha256(content).hexdigest()
    await blobs.put("acme", digest, content)
    blobs.at["acme", digest] = at
    return BlobInfo("acme", digest, len(content), at)


@pytest.mark.parametrize("before", [True, False])
async def test_what_is_stored_and_stays_needs_no_upload(anyio_backend: str, before: bool) -> None:
    """What is old and not in service is renewed, unless a sweep deletes it just then."""
    blobs = SweptBlobs(before=before)
    young = await put(blobs, b"young", AT - TRUSTED_S + 1)
    old = await put(blobs, b"old", AT - TRUSTED_S - 1)
    served = await put(blobs, b"served", 0.0)
    swept = await put(blobs, b"swept", 0.0)
    blobs.doomed = swept.sha256
    stored = {info.sha256: info for info in (young, old, served, swept)}

    staying = await staying_files(blobs, "acme", stored, frozenset({served.sha256}), AT)

    assert staying == {young.sha256, old.sha256, served.sha256}
    assert [blobs.at["acme", info.sha256] for info in (young, old, served)] == [young.at, AT, served.at]


async def test_what_cannot_be_renewed_is_uploaded_again(anyio_backend: str) -> None:
    """A store may leave a file of another owner as it is."""
    blobs = MemoryBlobs()  # whose time stands still
    old = await put(blobs, b"old", 0.0)

    assert await staying_files(blobs, "acme", {old.sha256: old}, frozenset(), AT) == frozenset()


class SlowBlobs(MemoryBlobs):
    """Renews one blob, and has not done with the next one."""

    async def renew(self, tenant: str, sha256: str) -> bool:
        if AT in self.at.values():
            await asyncio.Event().wait()
        return await super().renew(tenant, sha256)


async def test_a_store_that_is_slow_to_renew_goes_on_with_the_next_deploy(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is told before it gives up; what was renewed is."""
    monkeypatch.setattr(present_files, "RENEWING_S", 0.05)
    blobs = SlowBlobs(lambda: AT)
    old = [await put(blobs, content, 0.0) for content in (b"one", b"two")]

    with pytest.raises(BlobsDown, match="deploy again"):
        await staying_files(blobs, "acme", {info.sha256: info for info in old}, frozenset(), AT)
    assert sorted(blobs.at.values()) == [0.0, AT]


async def test_the_files_in_service_are_those_of_the_apps_present_versions(world: World) -> None:
    """Without an app, or without its manifest, there are none."""
    assert await files_in_service(world.registry, world.blobs, None) == frozenset()
    world.deploy(function())
    assert await files_in_service(world.registry, world.blobs, world.registry.apps["acme", "shop"]) == frozenset()


async def test_a_file_that_nothing_has_needed_for_long_is_renewed(world: World) -> None:
    """Whatever app it was of. The present one's are needed, and left as they are."""
    from tests.gateway.http.endpoints.test_apps import DEPLOYS, deploy_body

    digest = entry(b"print()").sha256
    await world.blobs.put("acme", digest, b"print()")
    world.blobs.at["acme", digest] = 0.0
    async with world.client() as client:
        assert (await client.post(DEPLOYS, content=deploy_body())).json()["missing"] == []
        assert world.blobs.at["acme", digest] > 0.0

        world.blobs.at["acme", digest] = 0.0
        assert (await client.post(DEPLOYS, content=deploy_body(message="again"))).json()["missing"] == []
        assert world.blobs.at["acme", digest] == 0.0
