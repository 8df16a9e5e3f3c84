"""What a deploy makes of the weights that its functions name."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.errors import BadInput, Conflict
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, Manifest, SignedManifest
from pilotlight_core.model.versions.manifest_codec import WEIGHTS
from pilotlight_core.model.versions.pushed_weights import WeightsRef
from pilotlight_gateway.deploys.rules.weights_rules import WeightsPush
from pilotlight_gateway.tenancy.auth import Principal
from tests.gateway.world import World, entry, function

ACME = Principal(tenant="acme", key_id="key1", scopes=frozenset({"deploy"}))


async def push(world: World, name: str, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    await world.blobs.put("acme", digest, content)
    parts = (ArtifactPart("m.safetensors", digest, len(content)),)
    pushed = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name=name, parts=parts)
    return (await world.services.deployer.weights.push(ACME, WeightsPush(pushed))).digest


async def request(world: World, *weights: str, **options: object) -> DeployRequest:
    await world.blobs.put("acme", entry(b"one").sha256, b"one")
    uses = DeployFunction(spec=function("a", **options), weights=weights)
    return DeployRequest(functions=(uses, DeployFunction(spec=function("b"))), files=(entry(b"one"),))


async def test_a_name_is_pinned_in_the_signed_manifest(world: World) -> None:
    """The version has the digest of that moment, and is for nodes that can do it; the other function has none."""
    small, large = await push(world, "small", b"1"), await push(world, "large", b"22")
    await world.services.deployer.deploy(ACME, "shop", await request(world, "small", f"large@{large[:9]}"))
    await push(world, "small", b"333")

    versions = {one.function: one for one in world.registry.versions.values()}
    stored = msgspec.msgpack.decode(await world.blobs.read("acme", versions["a"].manifest_sha256), type=SignedManifest)
    manifest = msgspec.json.decode(stored.manifest, type=Manifest)

    assert [(one.name, one.digest) for one in manifest.artifacts] == [("large", large), ("small", small)]
    assert manifest.spec.placing.weights == ""
    assert WEIGHTS in manifest.needs
    assert [one.digest for one in versions["a"].artifacts] == [large, small]
    assert versions["b"].artifacts == ()
    with pytest.raises(Conflict, match=r"large is used by shop\.a"):
        await world.services.deployer.weights.remove("acme", WeightsRef("large"))


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (("none",), "a: weights: There are no weights none"),
        (("m@00000000",), "a: weights: There are no weights m@00000000"),
        (("../m",), "weights"),
        (("m", "m"), "'m' stands twice"),
    ],
)
async def test_what_is_not_there_refuses_the_deploy(world: World, named: tuple[str, ...], said: str) -> None:
    """With the function's name, and nothing is deployed."""
    await push(world, "m", b"1")
    with pytest.raises(BadInput, match=said):
        await world.services.deployer.deploy(ACME, "shop", await request(world, *named))
    assert not world.registry.apps


async def test_artifacts_and_weights_share_a_folder(world: World) -> None:
    """So they share names."""
    await push(world, "m", b"1")
    asked = await request(world, "m")
    part = ArtifactPart("x", entry(b"one").sha256, 3)
    own = ArtifactEntry(kind=ArtifactKind.CONFIG, name="m", parts=(part,))
    using = msgspec.structs.replace(asked.functions[0], artifacts=("m",))
    asked = msgspec.structs.replace(asked, functions=(using,), artifacts=(own,))
    with pytest.raises(BadInput, match="which share a folder"):
        await world.services.deployer.deploy(ACME, "shop", asked)


async def test_a_name_for_affinity_stays_one_and_says_so(world: World) -> None:
    """Where weights of that name were pushed, the deployer is told how to have them."""
    asked = await request(world, placing=Placing(weights="llama"))
    assert (await world.services.deployer.deploy(ACME, "shop", asked)).warnings == ()
    await push(world, "llama", b"1")
    (warning,) = (await world.services.deployer.deploy(ACME, "shop", asked)).warnings
    assert 'write weights=["llama"]' in warning
    assert {one.spec.placing.weights for one in world.registry.versions.values()} == {"llama", ""}
