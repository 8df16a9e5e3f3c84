"""Functions that are served, and what they yield."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.ids import parse_ref
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.spec import FunctionSpec, MethodSpec, Mode, VersionRecord
from pilotlight_gateway.calls.call_port import ChunkEvent
from tests.builders.specs import method
from tests.gateway.world import WALL, World, function

NAME = "acme/tiny-1.5"
TEXT: dict[str, Any] = {"type": "string"}
ANY: dict[str, Any] = {}
GENERATION = {
    "type": "object",
    "properties": {
        "messages": {"type": "array", "items": {"type": "object"}}, "prompt": TEXT, "prompt_ids": ANY,
        "max_tokens": ANY, "temperature": ANY, "top_p": ANY, "seed": ANY, "stop": ANY, "logprobs": ANY, "tools": ANY,
        "tool_choice": ANY, "response_format": ANY,
    },
    "additionalProperties": False,
}  # fmt: skip
"""The schema of a function that takes what engines take."""


def generate(**options: Any) -> MethodSpec:
    """A method that generates text."""
    return method(attribute="tells", **{"mode": Mode.GENERATOR, "input_schema": GENERATION} | options)


def taking(*names: str, **options: Any) -> MethodSpec:
    """One that takes these parameters only."""
    schema = {"type": "object", "properties": dict.fromkeys(names, ANY), "additionalProperties": False}
    return generate(input_schema=schema, **options)


def served(world: World, *methods: MethodSpec, name: str = NAME, tenant: str = "acme", **options: Any) -> VersionRecord:
    """A function `shop.tells` that is deployed and served under a name."""
    spec: FunctionSpec = function("tells", *(methods or (generate(),)), serves=(name,), **options)
    (version,) = world.deploy(spec, tenant=tenant)
    own(world, name, tenant=tenant)
    return version


def own(world: World, name: str, ref: str = "shop.tells", tenant: str = "acme") -> None:
    """A record of who has a name."""
    found = parse_ref(ref)
    world.registry.model_records[tenant, name] = ModelRecord(
        tenant=tenant, name=name, app=found.app, function=found.function, created_at=WALL, claimed_at=WALL
    )


def chunks(*values: Any) -> list[ChunkEvent]:
    """What a function yields."""
    return [ChunkEvent(seq=n, data=msgspec.msgpack.encode(value)) for n, value in enumerate(values, 1)]
