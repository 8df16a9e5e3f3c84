"""The device memory of a function by its spec: declared, computed from its model, or unknown."""

from __future__ import annotations

from pilotlight_core.model.spec import FunctionSpec
from pilotlight_placement.asks.vram import MemoryPlan, declared, memory_plan


def plan_of(spec: FunctionSpec, devices: int = 1) -> MemoryPlan | None:
    """The computation for so many devices; None if the spec does not mention memory."""
    if spec.vram is not None:
        return declared(spec.vram, devices)
    if (model := spec.placing.model) is None:
        return None
    return memory_plan(
        model,
        concurrency=spec.concurrency,
        context_tokens=model.context_tokens,
        batch_tokens=model.batch_tokens,
        devices=devices,
    )


def memory_of(spec: FunctionSpec) -> int:
    """Bytes for a container in all (`Ask.vram`); 0 if unknown.

    Each device has its own CUDA context, so of several choices the one with the most devices decides.
    """
    counts = {choice.count for choice in spec.gpu if choice.type != "CPU"}
    return max((made.total for count in counts if (made := plan_of(spec, count)) is not None), default=0)
