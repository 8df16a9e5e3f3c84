"""Deploys done: nothing is half, and what agents will run is signed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from pilotlight_core.host.blobs import BlobsDown
from pilotlight_core.host.signing import Verifier
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.spec import FunctionSpec, SignedManifest
from pilotlight_gateway.tenancy.auth import Principal
from tests.gateway.world import World, entry, function

ACME = Principal(tenant="acme", key_id="key1", scopes=frozenset({"deploy"}))


def request(content: bytes, *specs: FunctionSpec) -> DeployRequest:
    functions = tuple(DeployFunction(spec=spec) for spec in specs or (function(),))
    return DeployRequest(functions=functions, files=(entry(content),))


async def upload(world: World, content: bytes, tenant: str = "acme") -> None:
    await world.blobs.put(tenant, entry(content).sha256, content)


async def test_what_is_missing_is_asked_for_and_nothing_is_deployed(world: World) -> None:
    """The answer lists the digests; a blob of another tenant does not help."""
    await upload(world, b"one", tenant="rival")

    answer = await world.services.deployer.deploy(ACME, "shop", request(b"one"))

    assert (answer.missing, answer.revision) == ((entry(b"one").sha256,), 0)
    assert not world.registry.apps
    assert not world.registry.versions


async def test_a_file_must_be_as_large_as_it_is_said_to_be(world: World) -> None:
    """Limits are checked against what entries say: a lie is refused by the file's name."""
    await upload(world, b"one")
    small = msgspec.structs.replace(entry(b"one"), size=1)
    asked = DeployRequest(functions=(DeployFunction(spec=function()),), files=(small,))

    with pytest.raises(BadInput, match=r"'main.py' has 3 bytes, not 1") as refused:
        await world.services.deployer.deploy(ACME, "shop", asked)

    assert (refused.value.more["field"], refused.value.meaning.status) == ("files.0.size", 422)
    assert not world.registry.apps


async def test_a_deploy_leaves_a_signed_manifest_and_atomic_records(world: World) -> None:
    """The version's blob is signed by the platform and says what the spec and files are."""
    await upload(world, b"one")

    answer = await world.services.deployer.deploy(ACME, "shop", request(b"one", function("a"), function("b")))

    assert [(line.name, line.version, line.changed) for line in answer.functions] == [
        ("a", "shop.a@v1", True),
        ("b", "shop.b@v1", True),
    ]
    version = world.registry.versions[answer.functions[0].version_id]
    blob = await world.blobs.read("acme", version.manifest_sha256)
    manifest = Verifier.load(world.signer.public).verify(msgspec.msgpack.decode(blob, type=SignedManifest))
    assert (manifest.function, manifest.files, manifest.version_id) == ("a", (entry(b"one"),), version.id)
    assert world.registry.apps["acme", "shop"].history[0].by == "key1"


async def test_unchanged_content_keeps_its_number_and_a_return_too(world: World) -> None:
    """v1, then v2, then v1 again: versions are what they contain."""
    for content in (b"one", b"two"):
        await upload(world, content)
    deploy = world.services.deployer.deploy

    contents = (b"one", b"two", b"two", b"one")
    names = [(await deploy(ACME, "shop", request(content))).functions[0] for content in contents]

    assert [(line.version, line.changed) for line in names] == [
        ("shop.hello@v1", True),
        ("shop.hello@v2", True),
        ("shop.hello@v2", False),
        ("shop.hello@v1", True),
    ]
    assert world.registry.apps["acme", "shop"].revision == 3


async def test_a_lost_race_is_run_again(world: World) -> None:
    """A few conflicts are overcome; for ever is not tried."""
    await upload(world, b"one")
    world.registry.conflicts = 3
    await world.services.deployer.deploy(ACME, "shop", request(b"one"))

    world.registry.conflicts = 100
    with pytest.raises(Conflict):
        await world.services.deployer.stop(ACME, "shop")


async def test_deploys_at_the_same_time_both_count(world: World) -> None:
    """Eight deploys of different content become eight versions with eight numbers."""
    contents = [f"content {number}".encode() for number in range(8)]
    for content in contents:
        await upload(world, content)

    answers = await asyncio.gather(
        *(world.services.deployer.deploy(ACME, "shop", request(content)) for content in contents)
    )

    record = world.registry.apps["acme", "shop"]
    assert record.revision == 8
    assert set(record.versions["hello"]) == {answer.functions[0].version_id for answer in answers}


async def test_a_stopped_app_is_gone_until_it_is_deployed(world: World) -> None:
    """Stopping twice is stopping once; an unknown app cannot be stopped."""
    await upload(world, b"one")
    deployer = world.services.deployer
    with pytest.raises(NotFound):
        await deployer.stop(ACME, "shop")
    await deployer.deploy(ACME, "shop", request(b"one"))

    assert (await deployer.stop(ACME, "shop")).revision == 2
    assert (await deployer.stop(ACME, "shop")).revision == 2
    assert (await deployer.deploy(ACME, "shop", request(b"one"))).revision == 3
    assert not world.registry.apps["acme", "shop"].stopped


async def test_without_blobs_nothing_is_written(world: World) -> None:
    """A store that is down leaves no version and no app."""
    world.blobs.down = True

    with pytest.raises(BlobsDown):
        await world.services.deployer.deploy(ACME, "shop", request(b"one"))

    assert not world.registry.apps
