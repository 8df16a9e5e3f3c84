"""What a deploy makes of engine functions."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from pilotlight import Sim, Torch
from pilotlight.definitions.engines.engine_specs import build_engine_spec
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.engines.generation import MOST_EMBEDDED
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, VersionRecord
from pilotlight_core.model.versions.manifest_codec import ENGINE
from pilotlight_engine.function_plan import plan_function
from pilotlight_gateway.deploys.engines.engine_plans import with_arithmetic
from pilotlight_gateway.deploys.rules.weights_rules import WeightsPush
from pilotlight_gateway.tenancy.auth import Principal
from tests.engine.test_function_plan import TINY
from tests.gateway.world import World, entry

ACME = Principal(tenant="acme", key_id="key1", scopes=frozenset({"deploy"}))


async def push(world: World, name: str, config: bytes) -> None:
    digest = hashlib.sha256(config).hexdigest()
    await world.blobs.put("acme", digest, config)
    pushed = ArtifactEntry(
        kind=ArtifactKind.WEIGHTS, name=name, parts=(ArtifactPart("config.json", digest, len(config)),)
    )
    await world.services.deployer.weights.push(ACME, WeightsPush(pushed))


async def deploy(world: World, engine: Any, *weights: str, **options: Any) -> tuple[VersionRecord, tuple[str, ...]]:
    await world.blobs.put("acme", entry(b"one").sha256, b"one")
    spec = build_engine_spec({"engine": engine, **options}, "chat")
    asked = DeployRequest(functions=(DeployFunction(spec=spec, weights=weights),), files=(entry(b"one"),))
    done = await world.services.deployer.deploy(ACME, "shop", asked)
    (version,) = world.registry.versions.values()
    return version, done.notes


async def test_the_memory_of_a_model_is_worked_out_and_told(world: World) -> None:
    await push(world, "tiny", json.dumps(TINY).encode())
    version, notes = await deploy(world, Torch("tiny"), "tiny", gpu="any")

    assert version.spec.vram
    assert version.spec.max_units == {"prompt_tokens": MOST_EMBEDDED, "completion_tokens": 256, "cached_tokens": 256}
    assert ENGINE in version.needs
    assert notes[0].startswith("chat: weights ")
    assert "total" in notes[0]


async def test_a_simulated_engine_needs_no_weights(world: World) -> None:
    version, notes = await deploy(world, Sim())

    assert version.spec.max_units == {"prompt_tokens": MOST_EMBEDDED, "completion_tokens": 4096, "cached_tokens": 4096}
    assert notes == ()


@pytest.mark.parametrize(
    ("config", "weights", "text"),
    [
        (b"{}", (), "chat: engine: 'tiny' is not among its weights, which are none"),
        (b"{}", ("tiny",), "chat: engine: config.json names the architecture none"),
        (b"{", ("tiny",), "chat: engine: config.json of the weights tiny is no JSON"),
        (b"[" * 100_000, ("tiny",), "is no JSON"),
        (b"[]", ("tiny",), "have no config.json"),
    ],
)
async def test_a_model_that_does_not_run_is_refused(
    world: World, config: bytes, weights: tuple[str, ...], text: str
) -> None:
    """Its files are a tenant's."""
    await push(world, "tiny", config)
    with pytest.raises(BadInput, match=text):
        await deploy(world, Torch("tiny"), *weights)
    assert not world.registry.apps


def test_a_refusal_by_the_fleet_has_the_arithmetic() -> None:
    made = plan_function(build_engine_spec({"engine": Torch("tiny"), "gpu": "any"}, "chat"), TINY)
    refused = BadInput("chat: no GPU of the fleet has 3 GiB.", field="vram")

    told = with_arithmetic(refused, {"chat": made, "other": made})
    assert told.detail.startswith("chat: no GPU of the fleet has 3 GiB.\nchat: weights ")
    assert told.more["field"] == "vram"
    assert with_arithmetic(refused, {}) is refused
