"""First fit: the first free slice, in a fixed order of nodes, that satisfies an ask.

The simplest policy behind the interface `place(fleet, ask) -> Placement | NoFit`. Filters are a list in the order in
which they are tried, one sentence each, so that a refusal can name what stood in the way.
"""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.model.messages import SliceKind, SliceReport
from pilotlight_core.model.spec import Isolation
from pilotlight_core.model.units import WHOLE_DEVICE, GpuAsk
from pilotlight_placement.fleet import ANY_GPU, CPU, Ask, Fleet, Node, NoFit, Placement


def is_of_type(_: Node, part: SliceReport, choice: GpuAsk, __: Ask) -> bool:
    """The slice is of the device type that is asked for; "A100" takes an A100-40GB and an A100-80GB alike."""
    if choice.type == CPU:
        return part.kind is SliceKind.CPU
    kind = part.gpu_type.upper()
    return part.kind is not SliceKind.CPU and (choice.type in (ANY_GPU, kind) or kind.startswith(f"{choice.type}-"))


def has_count(_: Node, __: SliceReport, choice: GpuAsk, ___: Ask) -> bool:
    """One device is asked for: several whole GPUs for one container are not offered yet."""
    return choice.count == 1


def has_memory(_: Node, part: SliceReport, choice: GpuAsk, ask: Ask) -> bool:
    """Its device memory holds what is asked for; on a CPU slot weights live in the container's own memory."""
    return choice.type == CPU or part.memory >= ask.vram


def is_isolated(_: Node, part: SliceReport, choice: GpuAsk, ask: Ask) -> bool:
    """It is shared with nobody whom the isolation class excludes."""
    if choice.type == CPU or ask.isolation is Isolation.SHARED:
        return True
    if ask.isolation is Isolation.MIG:
        return part.kind is SliceKind.MIG or part.ppm == WHOLE_DEVICE
    return part.ppm == WHOLE_DEVICE


def has_host_memory(node: Node, _: SliceReport, __: GpuAsk, ask: Ask) -> bool:
    """The host has the memory that the container may use, where the node says how much there is."""
    return not node.host_memory or ask.memory <= node.host_memory


Filter = Callable[[Node, SliceReport, GpuAsk, Ask], bool]
FILTERS: tuple[Filter, ...] = (is_of_type, has_count, has_memory, has_host_memory, is_isolated)


def place(fleet: Fleet, ask: Ask) -> Placement | NoFit:
    """The first free slice that fits, by preference of GPU type first.

    Returns:
        The placement, or why there is none, with the fleet described in words.
    """
    possible = 0
    for choice in ask.choices:
        for node, part in fleet.slices():
            if not all(fits(node, part, choice, ask) for fits in FILTERS):
                continue
            possible += 1
            if fleet.is_free(node, part):
                return Placement(node=node.name, slice=part.id)
    if possible:
        return NoFit(reason=f"all {possible} slices that could hold {ask} are in use", never=False)
    return NoFit(reason=f"it asks for {ask}, and the fleet has {fleet.describe()}", never=True)
