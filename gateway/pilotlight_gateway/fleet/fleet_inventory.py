"""The fleet as placement sees it, from what this gateway hears: to draw it, and to refuse what can never fit.

Only the controller decides where containers go. What is asked here needs no more than the nodes' own reports.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec

from pilotlight_core.model.api.curve_api import SliceKindInfo
from pilotlight_core.model.api.placement_api import ROOM_COUNTED, FleetInfo, FloorInfo, FunctionPlacement
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.agent_messages import ContainerState
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.spec import FunctionSpec, Isolation, VersionRecord
from pilotlight_core.model.suggestions import as_sentence
from pilotlight_gateway.fleet.fleet_questions import Inventory
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.explain.api_views import fleet_info, placement_info
from pilotlight_placement.explain.floor_capacity import containers_that_fit, most_containers
from pilotlight_placement.explain.speeds import slice_kinds
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reports import FleetMirror
from pilotlight_placement.search.decision_record import NoFit
from pilotlight_placement.search.feasibility import could_hold
from pilotlight_placement.search.place import place

SURE_AFTER_S = 3.0
"""Three reports of every node: sooner, a node that was not heard yet may have what is asked for."""


class FleetPlacements:
    """Answers about the fleet. The work is done in a thread: ten thousand GPUs take a moment."""

    def __init__(self, view: FleetView | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.view = view or FleetView()
        self._clock = clock
        self._mirror = FleetMirror()
        self._busy = asyncio.Lock()
        self._inventory = Inventory()

    async def fleet(self) -> FleetInfo:
        """Every GPU and slot with its containers."""
        at = self._clock()
        reports = self.view.reports(at)
        async with self._busy:
            return await asyncio.to_thread(lambda: fleet_info(self._mirror.sync(reports, at=at)))

    def containers(self) -> list[str]:
        """The containers of all tenants."""
        return [each["id"] for each in self.view.containers(None, self._clock())]

    async def of_version(
        self, record: VersionRecord, curves: Curves | None = None, rps: float | None = None
    ) -> FunctionPlacement:
        """The arithmetic of a version's memory, what is known of its speed, and whether the fleet could hold it.

        With how much of its floor fits; with calls per second also how many containers carry them.
        """
        function = f"{record.tenant}:{record.app}.{record.function}"
        ask = Ask.of(record.spec, function=function, tenant=record.tenant, curves=curves)
        theirs = self.view.containers(record.tenant, self._clock())
        there = sum(each["version"] == record.id and each["state"] is not ContainerState.DRAINING for each in theirs)
        return await self._placement_of(record.spec, ask, record.ref, rps, there)

    async def of_spec(self, spec: FunctionSpec, tenant: str) -> FunctionPlacement:
        """The same for a function that is not deployed."""
        return await self._placement_of(spec, Ask.of(spec, function=f"{tenant}:{spec.name}", tenant=tenant), spec.name)

    async def _placement_of(
        self, spec: FunctionSpec, ask: Ask, version: str, rps: float | None = None, there: int = 0
    ) -> FunctionPlacement:
        wanted = spec.min_containers
        free = await self._room(ask, min(ROOM_COUNTED, max(0, wanted - there))) if wanted else 0

        def describe(fleet: Fleet) -> FunctionPlacement:
            floor = (
                FloorInfo(wanted=wanted, there=there, room=free, most=most_containers(fleet, ask)) if wanted else None
            )
            return placement_info(fleet, spec, ask, version, rps, floor)

        return await self._inventory.ask(self.view.remembered(self._clock()), describe)

    async def _room(self, ask: Ask, missing: int) -> int:
        """How many of so many containers would fit beside those that run now."""
        at = self._clock()
        reports = self.view.reports(at)
        async with self._busy:
            return await asyncio.to_thread(lambda: containers_that_fit(self._mirror.sync(reports, at=at), ask, missing))

    async def slices(self, spec: FunctionSpec) -> tuple[SliceKindInfo, ...]:
        """The kinds of slices that the fleet has and the function could run on, free or not."""
        reports = self.view.remembered(self._clock())
        plain = msgspec.structs.replace(spec.placing, measured=())
        ask = Ask.of(msgspec.structs.replace(spec, placing=plain))
        return await self._inventory.ask(reports, lambda fleet: kinds(fleet, ask))

    async def check(self, specs: Iterable[FunctionSpec]) -> tuple[str, ...]:
        """Refuse a function that no node could ever hold, with the largest slice that exists and what is missing.

        Returns a warning for each whose floor is more than the fleet could ever hold. A fleet that is not known yet
        refuses nothing: calls are told then.

        Raises:
            BadInput: naming the function and the option.
        """
        at = self._clock()
        reports = self.view.remembered(at)
        if reports and self.view.listened(at) >= SURE_AFTER_S:
            return await self._inventory.ask(reports, lambda fleet: check_specs(fleet, tuple(specs)))
        return ()


def kinds(fleet: Fleet, ask: Ask) -> tuple[SliceKindInfo, ...]:
    """The kinds of slices that would hold an ask, and whether all of a kind are of GPUs in software."""
    real = {unit.gpu.device.name for unit in fleet.units.values() if unit.gpu is not None and not unit.gpu.software}
    software = {unit.gpu.device.name for unit in fleet.units.values() if unit.gpu is not None} - real
    return tuple(msgspec.structs.replace(kind, software=kind.gpu in software) for kind in slice_kinds(fleet, ask))


def check_specs(fleet: Fleet, specs: tuple[FunctionSpec, ...]) -> tuple[str, ...]:
    """Refuse the first function that the fleet could never hold; warn of floors that are more than it could.

    Raises:
        BadInput: naming the function and the option.
    """
    for spec in specs:
        found = place(fleet, ask := Ask.of(spec))
        if isinstance(found, NoFit) and found.never:
            told = as_sentence(f"{spec.name} can never run here: {found.reason}")
            raise BadInput(told, field=obstacle(fleet, ask))
    warnings = (floor_warning(fleet, spec) for spec in specs)
    return tuple(warning for warning in warnings if warning)


def floor_warning(fleet: Fleet, spec: FunctionSpec) -> str:
    """What is said of a floor that the fleet could never hold whole; "" of others."""
    if spec.min_containers < 2 or (held := most_containers(fleet, Ask.of(spec))) >= spec.min_containers:
        return ""
    return (
        f"{spec.name}: of min_containers={spec.min_containers} only {held} can ever run here: "
        f"the fleet has {fleet.describe()}, and no room for more of them even if all of it were free."
    )


LET_GO: dict[str, dict[str, Any]] = {
    "vram": {"vram": 1},  # unlike 0, which only whole devices hold
    "memory": {"memory": 0},
    "region": {"regions": ()},
    "zone": {"zones": ()},
    "spot": {"purchase": Purchase.ANY},
    "isolation": {"isolation": Isolation.SHARED},
    "slo": {"slo_ms": None},
}
"""Options of a function, and an ask without what they ask for; what is left is which GPUs, and how many."""


def obstacle(fleet: Fleet, ask: Ask) -> str:
    """The option that stands in the way of an ask that the fleet could never hold: without it, it could be held.

    If there is none, it is which GPUs are asked for, or how many; or several options, of which the first is named that
    is in the way by itself.
    """
    for option, without in LET_GO.items():
        if could_hold(fleet, replace(ask, **without)):
            return option
    nothing = {name: value for without in LET_GO.values() for name, value in without.items()}
    if not could_hold(fleet, replace(ask, **nothing)):
        return "gpu"
    for option, without in LET_GO.items():
        alone = nothing | {name: getattr(ask, name) for name in without}
        if not could_hold(fleet, replace(ask, **alone)):
            return option
    return "gpu"
