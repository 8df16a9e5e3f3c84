"""Deploys done: nothing is half, and what agents will run is signed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pilotlight_core.host.blobs import BlobsDown
from pilotlight_core.host.signing import Signer, Verifier
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, QuotaExceeded, UnknownFunction
from pilotlight_core.model.fallbacks.fallback import Fallback
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.packages.package_locks import environment_id
from pilotlight_core.model.spec import (
    ArtifactEntry,
    ArtifactInfo,
    ArtifactKind,
    ArtifactPart,
    FunctionSpec,
    Manifest,
    SignedManifest,
)
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.deploys.app_records import app_info
from pilotlight_gateway.deploys.package_locker import MemoryLocker
from pilotlight_gateway.secrets.secret_service import set_secret
from pilotlight_gateway.supply.signing_keys import LoneSigner
from pilotlight_gateway.tenancy.auth import Principal
from tests.builders.package_locks import package_lock
from tests.builders.specs import id_of
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


def with_weights(*contents: bytes) -> DeployRequest:
    """Two functions, one of which has weights of these parts."""
    made = request(b"one", function("a"), function("b"))
    parts = tuple(ArtifactPart("model.bin", entry(content).sha256, len(content)) for content in contents)
    tiny = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=parts)
    using = msgspec.structs.replace(made.functions[0], artifacts=("tiny",))
    return msgspec.structs.replace(made, functions=(using, made.functions[1]), artifacts=(tiny,))


async def test_artifacts_are_asked_for_once_and_shown(world: World) -> None:
    """Parts that are missing, each once; they are of the version whose function names them, and of the app's list.

    However old they are, the next deploy asks for none: they are in service.
    """
    await upload(world, b"one")
    deployer, asked = world.services.deployer, with_weights(b"x", b"y", b"x")
    parts = {entry(content).sha256 for content in (b"x", b"y")}
    assert set((await deployer.deploy(ACME, "shop", asked)).missing) == parts
    for content in (b"x", b"y"):
        await upload(world, content)

    answer = await deployer.deploy(ACME, "shop", asked)
    world.blobs.at = dict.fromkeys(world.blobs.kept, 0.0)
    changed = msgspec.structs.replace(asked, message="again", base="torch")

    assert [one.changed for one in answer.functions] == [True, True]
    assert (await deployer.deploy(ACME, "shop", changed)).missing == ()
    shown = app_info(world.registry.apps["acme", "shop"], world.registry, [], 0.0)
    assert [one.artifacts for one in shown.functions] == [
        (ArtifactInfo(kind=ArtifactKind.WEIGHTS, name="tiny", files=1, size=3),),
        (),
    ]


async def test_artifacts_count_as_files_before_they_are_sent(world: World) -> None:
    """What would not fit is refused while nothing has been uploaded of it; a part's size must be its own."""
    await upload(world, b"one")
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(blob_bytes=50_000))
    asked = with_weights(b"x" * 30_000, b"y" * 30_000)

    with pytest.raises(QuotaExceeded, match="blob_bytes"):
        await world.services.deployer.deploy(ACME, "shop", asked)
    await upload(world, b"x")
    short = ArtifactPart("model.bin", entry(b"x").sha256, 0)
    lie = msgspec.structs.replace(asked, artifacts=(msgspec.structs.replace(asked.artifacts[0], parts=(short,)),))
    with pytest.raises(BadInput, match=r"'model.bin' has 1 bytes there, not 0"):
        await world.services.deployer.deploy(ACME, "shop", lie)


async def test_a_part_counts_as_often_as_it_is_named(world: World) -> None:
    """Though the store has it once, and already: nodes have it each time."""
    for content in (b"one", b"x" * 30_000):
        await upload(world, content)
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(blob_bytes=100_000))
    deployer = world.services.deployer

    assert (await deployer.deploy(ACME, "shop", with_weights(b"x" * 30_000, b"x" * 30_000))).missing == ()
    with pytest.raises(QuotaExceeded, match="blob_bytes"):
        await deployer.deploy(ACME, "shop", with_weights(*[b"x" * 30_000] * 4))


async def test_a_secret_that_there_is_not_refuses_a_deploy_before_anything_is_sent(world: World) -> None:
    """Once it is set, the deploy is taken; the manifest names it."""
    uses = function(secrets={"TOKEN": "token"})
    with pytest.raises(BadInput, match="there is no secret token: run `pilotlight secret set token`"):
        await world.services.deployer.deploy(ACME, "shop", request(b"one", uses))
    await set_secret(world.services.vault, "acme", "token", "a value of acme", by="key1", at=0.0)
    await upload(world, b"one")
    await world.services.deployer.deploy(ACME, "shop", request(b"one", uses))

    (version,) = world.registry.versions.values()
    stored = await world.blobs.read("acme", version.manifest_sha256)
    assert b'"secrets":{"TOKEN":"token"}' in stored
    assert b"a value of acme" not in stored + msgspec.json.encode(version)


async def test_a_fallback_that_is_not_in_the_app_refuses_its_deploy(world: World) -> None:
    """Before anything is sent; with it the manifest names it."""
    large, small = function("large", fallback=Fallback("small")), function("small")
    with pytest.raises(BadInput, match="there is no function small in this app"):
        await world.services.deployer.deploy(ACME, "shop", request(b"one", large))
    await upload(world, b"one")
    await world.services.deployer.deploy(ACME, "shop", request(b"one", large, small))

    assert {version.function: version.needs for version in world.registry.versions.values()} == {
        "large": ("fallback",), "small": (),
    }  # fmt: skip


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
    assert (manifest.function, manifest.files, id_of(manifest)) == ("a", (entry(b"one"),), version.id)
    assert world.registry.apps["acme", "shop"].history[0].by == "key1"


async def test_unchanged_content_is_signed_anew_by_a_gateway_with_another_key(world: World) -> None:
    """So a key can be dropped once all that is wanted was deployed again, changed or not."""
    await upload(world, b"one")
    asked = request(b"one", function("a"))
    first = await world.services.deployer.deploy(ACME, "shop", asked)
    other = Signer(Ed25519PrivateKey.generate())

    deployer = world.services.deployer
    signing_otherwise = replace(deployer, signer=LoneSigner(other))
    again = await signing_otherwise.deploy(ACME, "shop", asked)

    assert (again.revision, again.functions[0].changed) == (first.revision, False)
    blob = await world.blobs.read("acme", world.registry.versions[again.functions[0].version_id].manifest_sha256)
    assert Verifier.load(other.public).verify(msgspec.msgpack.decode(blob, type=SignedManifest)).function == "a"


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


RUN = "shop-run-1"


def run_of(content: bytes, *specs: FunctionSpec, seconds: float = 60.0) -> DeployRequest:
    return msgspec.structs.replace(request(content, *specs), ends_in_s=seconds)


async def test_a_run_is_beside_what_is_deployed(world: World) -> None:
    """The same content under another name is another version; it keeps no containers and ends at a time."""
    await upload(world, b"one")
    deployer = world.services.deployer
    kept = function(min_containers=1)
    (deployed,) = (await deployer.deploy(ACME, "shop", request(b"one", kept))).functions
    before, began = world.registry.apps["acme", "shop"], time.time()

    (ran,) = (await deployer.deploy(ACME, RUN, run_of(b"one", kept))).functions

    assert world.registry.apps["acme", "shop"] == before
    assert ran.version_id != deployed.version_id
    assert world.registry.versions[ran.version_id].spec.min_containers == 0
    assert began + 60.0 <= world.registry.apps["acme", RUN].ends_at <= time.time() + 60.0


async def test_a_run_and_what_is_deployed_do_not_replace_each_other(world: World) -> None:
    """Whichever was there first."""
    await upload(world, b"one")
    deployer = world.services.deployer
    await deployer.deploy(ACME, "shop", request(b"one"))
    await deployer.deploy(ACME, RUN, run_of(b"one"))

    with pytest.raises(Conflict, match="shop is deployed already"):
        await deployer.deploy(ACME, "shop", run_of(b"one"))
    with pytest.raises(Conflict, match="shop-run-1 is a run already"):
        await deployer.deploy(ACME, RUN, request(b"one"))
    with pytest.raises(Conflict, match="deployed for good"):
        await deployer.renew(ACME, "shop", 60.0)


async def test_a_run_is_renewed_until_it_has_ended(world: World) -> None:
    """Then it is not there any more, and the next deploy forgets it: it is no part of what its tenant may have."""
    await upload(world, b"one")
    deployer = world.services.deployer
    (ran,) = (await deployer.deploy(ACME, RUN, run_of(b"one"))).functions
    renewed = await deployer.renew(ACME, RUN, 600.0)
    assert renewed.ends_at > time.time() + 500.0
    assert await world.services.resolver.resolve("acme", f"{RUN}.hello")

    world.registry.apps["acme", RUN] = msgspec.structs.replace(renewed, ends_at=time.time() - 1.0)
    with pytest.raises(NotFound, match="has ended"):
        await deployer.renew(ACME, RUN, 60.0)
    with pytest.raises(UnknownFunction, match="The run shop-run-1 has ended"):
        await world.services.resolver.resolve("acme", f"{RUN}.hello")
    await deployer.deploy(ACME, "shop", request(b"one"))
    assert ("acme", RUN) not in world.registry.apps
    assert ran.version_id not in world.registry.versions


def requiring(content: bytes, *requirements: str) -> DeployRequest:
    return msgspec.structs.replace(request(content), requirements=requirements)


async def test_what_requirements_come_to_is_signed(world: World) -> None:
    """It is part of the version, which needs nodes that build, and names what they build."""
    await upload(world, b"one")
    deployer, lock = world.services.deployer, package_lock("tiny")
    bare = await deployer.deploy(ACME, "shop", request(b"one"))
    asked = requiring(b"one", "tiny")

    answer = await deployer.deploy(ACME, "shop", asked, lock)

    assert [(one.version, one.changed) for one in answer.functions] == [("shop.hello@v2", True)]
    assert bare.functions[0].version_id != answer.functions[0].version_id
    record = world.registry.versions[answer.functions[0].version_id]
    assert record.needs == ("requirements",)
    assert record.environment == environment_id("acme", lock)
    signed = msgspec.msgpack.decode(await world.blobs.read("acme", record.manifest_sha256), type=SignedManifest)
    assert msgspec.json.decode(signed.manifest, type=Manifest).lock == lock
    satisfied = await deployer.deploy(ACME, "shop", asked, package_lock("tiny", packages=()))
    assert world.registry.versions[satisfied.functions[0].version_id].needs == ()


async def test_the_lock_in_service_is_known_to_who_locks_anew(world: World) -> None:
    """If it is of the same requirements over the same base environment, however they are ordered."""
    await upload(world, b"one")
    deployer, lock = world.services.deployer, package_lock("a", "tiny")
    locker = world.services.locker
    assert isinstance(locker, MemoryLocker)
    with pytest.raises(BadInput, match="There is no index"):
        await deployer.lock(ACME, "shop", requiring(b"one", "tiny", "a"))
    assert locker.asked[-1] == ("acme", "default", ("a", "tiny"))
    await deployer.deploy(ACME, "shop", requiring(b"one", "a", "tiny"), lock)

    assert await deployer.lock(ACME, "shop", requiring(b"two", "tiny", "a")) == lock
    for other in (
        requiring(b"one", "tiny"),
        msgspec.structs.replace(requiring(b"one", "a", "tiny"), base="torch"),
    ):
        with pytest.raises(BadInput):
            await deployer.lock(ACME, "shop", other)
