"""Engine functions of a deploy: their memory by their models' files, and the most that their calls are billed for."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.engines.engine_spec import EngineKind
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import ArtifactEntry
from pilotlight_engine.function_plan import FunctionPlan, plan_function
from pilotlight_engine.memory_plan import UnfitModel

CONFIG_FILE = "config.json"
MAX_CONFIG = 2**20
"""Bytes of a model's configuration."""


async def planned_engines(
    blobs: BlobStore, tenant: str, request: DeployRequest, pins: Mapping[str, tuple[ArtifactEntry, ...]]
) -> tuple[DeployRequest, Mapping[str, FunctionPlan]]:
    """The request with what its engines need filled in, and their plans by function.

    Raises:
        BadInput: naming the function, and the arithmetic of what does not fit.
    """
    plans: dict[str, FunctionPlan] = {}
    functions = []
    for function in request.functions:
        if function.spec.engine is not UNSET:
            plan = await _plan(blobs, tenant, function, pins.get(function.spec.name, ()))
            plans[function.spec.name] = plan
            function = replace(function, spec=plan.spec)
        functions.append(function)
    return (replace(request, functions=tuple(functions)), plans) if plans else (request, plans)


def arithmetic(plans: Mapping[str, FunctionPlan]) -> tuple[str, ...]:
    """What a deployer is told of the memory of each engine."""
    return tuple(f"{name}: {plan.text}" for name, plan in plans.items() if plan.text)


def with_arithmetic(error: BadInput, plans: Mapping[str, FunctionPlan]) -> BadInput:
    """A refusal of a function that no node holds, with how its memory was worked out."""
    told = [line for line in arithmetic(plans) if error.detail.startswith(line.partition(":")[0])]
    if not told:
        return error
    return BadInput("\n".join([error.detail, *told]), field=str(error.more.get("field", "vram")))


async def _plan(
    blobs: BlobStore, tenant: str, function: DeployFunction, pinned: tuple[ArtifactEntry, ...]
) -> FunctionPlan:
    spec = function.spec
    engine = spec.engine
    there = {one.name: one for one in pinned}
    for name in engine.weights_names if engine is not UNSET else ():
        if name not in there:
            raise BadInput(
                f"{spec.name}: engine: {name!r} is not among its weights, which are {', '.join(there) or 'none'}.",
                field="engine",
            )
    try:
        needs_config = engine is not UNSET and engine.kind is not EngineKind.SIM
        config = await _config(blobs, tenant, there[engine.weights]) if needs_config and engine is not UNSET else None
        return plan_function(spec, config)
    except UnfitModel as error:
        raise BadInput(f"{spec.name}: engine: {error}", field="engine") from error


async def _config(blobs: BlobStore, tenant: str, model: ArtifactEntry) -> dict[str, object] | None:
    """The configuration of a model, which is a tenant's file: bounded, and read as JSON. None: there is none."""
    parts = [part for part in model.parts if part.path == CONFIG_FILE]
    if len(parts) != 1 or parts[0].size > MAX_CONFIG:
        return None
    try:
        read = msgspec.json.decode(await blobs.read(tenant, parts[0].sha256))
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnfitModel(f"config.json of the weights {model.name} is no JSON: {error}") from error
    return read if isinstance(read, dict) else None
