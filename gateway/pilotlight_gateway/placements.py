"""The fleet as placement sees it, from what this gateway hears: to draw it, and to refuse what can never fit.

Only the controller decides where containers go. What is asked here needs no more than the nodes' own reports.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import msgspec

from pilotlight_core.model.api_placement import FleetTold, FunctionPlacement
from pilotlight_core.model.curves import SliceKindTold
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages import NodeReport
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_gateway.fleet_view import FleetView
from pilotlight_placement.ask import Ask
from pilotlight_placement.curves import Curves
from pilotlight_placement.fleet import Fleet
from pilotlight_placement.place import place
from pilotlight_placement.record import NoFit
from pilotlight_placement.reports import Mirror, gpu_of, node_of
from pilotlight_placement.speeds import slice_kinds
from pilotlight_placement.telling import fleet_told, placement_told

SURE_AFTER_S = 3.0
"""Three reports of every node: sooner, a node that was not heard yet may have what is asked for."""


class Placements:
    """Answers about the fleet. The work is done in a thread: ten thousand GPUs take a moment."""

    def __init__(self, view: FleetView | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.view = view or FleetView()
        self._clock = clock
        self._mirror = Mirror()
        self._busy = asyncio.Lock()

    async def fleet(self) -> FleetTold:
        """Every GPU and slot with who is on it."""
        at = self._clock()
        reports = self.view.reports(at)
        async with self._busy:
            return await asyncio.to_thread(lambda: fleet_told(self._mirror.sync(reports, at=at)))

    def containers(self) -> list[str]:
        """The containers that there are now, whoever's."""
        return [each["id"] for each in self.view.containers(None, self._clock())]

    async def of_spec(
        self, spec: FunctionSpec, version: str, curves: Curves | None = None, rps: float | None = None
    ) -> FunctionPlacement:
        """The arithmetic of a function's memory, what is known of its speed, and whether the fleet could hold it.

        With calls per second also how many containers carry them.
        """
        reports = self.view.remembered(self._clock())
        ask = Ask.of(spec, curves=curves)
        return await asyncio.to_thread(lambda: placement_told(standing(reports), spec, ask, version, rps))

    async def slices(self, spec: FunctionSpec) -> tuple[SliceKindTold, ...]:
        """The kinds of slices that the fleet has and the function could run on, whoever uses them now."""
        reports = self.view.remembered(self._clock())
        plain = msgspec.structs.replace(spec.placing, measured=())
        ask = Ask.of(msgspec.structs.replace(spec, placing=plain))
        return await asyncio.to_thread(lambda: kinds(reports, ask))

    async def check(self, specs: Iterable[FunctionSpec]) -> None:
        """Refuse a function that no node could ever hold, with the largest slice that exists and what is missing.

        A fleet that is not known yet refuses nothing: calls are told then.

        Raises:
            BadInput: naming the function and the option.
        """
        at = self._clock()
        reports = self.view.remembered(at)
        if reports and self.view.listened(at) >= SURE_AFTER_S:
            await asyncio.to_thread(check_specs, standing(reports), tuple(specs))


def kinds(reports: Sequence[NodeReport], ask: Ask) -> tuple[SliceKindTold, ...]:
    """The kinds of slices that would hold an ask, and whether all of a kind are of GPUs in software."""
    real: dict[str, bool] = {}
    for report in reports:
        for device in report.devices:
            name = gpu_of(device).device.name
            real[name] = real.get(name, False) or not device.fake
    found = slice_kinds(standing(reports), ask)
    return tuple(msgspec.structs.replace(kind, software=not real.get(kind.gpu, True)) for kind in found)


def standing(reports: Iterable[NodeReport]) -> Fleet:
    """What there is, whoever uses it now: nodes that drain and GPUs that are being changed will be back."""
    nodes = [node_of(report) for report in reports]
    return Fleet(
        replace(node, draining=False, gpus=tuple(replace(gpu, withdrawn="") for gpu in node.gpus)) for node in nodes
    )


def check_specs(fleet: Fleet, specs: tuple[FunctionSpec, ...]) -> None:
    """Refuse the first function that the fleet could never hold.

    Raises:
        BadInput: naming the function and the option.
    """
    for spec in specs:
        found = place(fleet, Ask.of(spec))
        if isinstance(found, NoFit) and found.never:
            field = next((field for field, name in FIELDS if dict(found.record.refused).get(name)), "gpu")
            raise BadInput(f"{spec.name} can never run here: {found.reason}.", field=field)


FIELDS = (("vram", "vram"), ("memory", "host_memory"), ("region", "region"), ("zone", "zone"), ("spot", "purchase"))
"""Option of a function, and the filter that rules devices out by it."""
