"""Shows the fleet, and checks whether it could hold a function. Only the controller places containers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import msgspec

from pilotlight_core.model.api.curve_api import SliceKindInfo
from pilotlight_core.model.api.placement_api import ROOM_COUNTED, FleetInfo, FloorInfo, FunctionPlacement
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.spec import DEFAULT_BASE, FunctionSpec, Isolation, VersionRecord
from pilotlight_core.model.suggestions import as_sentence
from pilotlight_core.model.versions.manifest_codec import (
    ARTIFACTS,
    MAX_UNITS,
    NETWORK,
    REQUIREMENTS,
    SANDBOX_LIMITS,
    USAGE_TAGS,
    WARM_WINDOWS,
)
from pilotlight_gateway.fleet.fleet_questions import Inventory
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.explain.api_views import fleet_info, placement_info
from pilotlight_placement.explain.floor_capacity import containers_that_fit, most_containers
from pilotlight_placement.explain.speeds import slice_kinds
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reports import FleetMirror
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.decision_record import NoFit
from pilotlight_placement.search.feasibility import could_hold
from pilotlight_placement.search.place import place

SURE_AFTER_S = 3.0
"""Three report intervals: earlier, some node may not have reported."""


FunctionNeeds = Mapping[str, tuple[str, ...]]
"""function -> features, as in `Manifest.needs`"""
NO_NEEDS: FunctionNeeds = MappingProxyType({})


class FleetPlacements:
    """Answers questions about the fleet, in a thread: ten thousand GPUs take a while."""

    def __init__(
        self,
        view: FleetView | None = None,
        clock: Callable[[], float] = time.monotonic,
        prices: Prices | None = None,
        pool_nodes: Callable[[], Sequence[Node]] = tuple,
    ) -> None:
        """`pool_nodes` gives one node of each kind that pools may launch."""
        self.view = view or FleetView()
        self._pool_nodes = pool_nodes
        self._clock = clock
        self._mirror = FleetMirror(prices)
        self._busy = asyncio.Lock()
        self._inventory = Inventory()

    async def fleet(self) -> FleetInfo:
        """Every GPU and CPU slot with its containers."""
        at = self._clock()
        reports = self.view.reports(at)
        async with self._busy:
            return await asyncio.to_thread(lambda: fleet_info(self._mirror.sync(reports, at=at)))

    def containers(self) -> list[str]:
        """The ids of all tenants' containers."""
        return [each["id"] for each in self.view.containers(None, self._clock())]

    async def of_version(
        self, record: VersionRecord, curves: Curves | None = None, rps: float | None = None
    ) -> FunctionPlacement:
        """A version's memory and speed, and whether the fleet could hold it and its `min_containers`.

        With `rps` (calls per second), also the containers that they need.
        """
        ask = ask_of(record, curves)
        theirs = self.view.containers(record.tenant, self._clock())
        there = sum(each["version"] == record.id and each["state"] is not ContainerState.DRAINING for each in theirs)
        return await self._placement_of(record.spec, ask, record.ref, rps, there)

    async def free_places(self, record: VersionRecord, most: int) -> int | None:
        """For how many more containers of a version there is room now, `most` at most; None: no fleet is known yet."""
        if not self.view.reports(self._clock()):
            return None
        return await self._room(ask_of(record), most)

    async def of_spec(self, spec: FunctionSpec, tenant: str, base: str = DEFAULT_BASE) -> FunctionPlacement:
        """As `of_version`, for a function that is not deployed."""
        ask = Ask.of(spec, function=f"{tenant}:{spec.name}", tenant=tenant, base=base)
        return await self._placement_of(spec, ask, spec.name)

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
        at = self._clock()
        reports = self.view.reports(at)
        async with self._busy:
            return await asyncio.to_thread(lambda: containers_that_fit(self._mirror.sync(reports, at=at), ask, missing))

    async def slices(self, spec: FunctionSpec) -> tuple[SliceKindInfo, ...]:
        """The kinds of slices in the fleet on which the function could run, free or not."""
        reports = self.view.remembered(self._clock())
        plain = msgspec.structs.replace(spec.placing, measured=())
        ask = Ask.of(msgspec.structs.replace(spec, placing=plain))
        return await self._inventory.ask(reports, lambda fleet: kinds(fleet, ask))

    async def check(
        self, specs: Iterable[FunctionSpec], base: str = DEFAULT_BASE, needs: FunctionNeeds = NO_NEEDS
    ) -> tuple[str, ...]:
        """Refuse functions that no node could ever hold. Returns warnings about floors that the fleet could not hold.

        Refuses nothing while the fleet is unknown. `base` is the functions' base environment; `needs` has the features
        that they need, where these are not those of their specs alone.

        Raises:
            BadInput: names the function, the option, the largest slice of the fleet, and what is missing.
        """
        at = self._clock()
        reports = self.view.remembered(at)
        if reports and self.view.listened(at) >= SURE_AFTER_S:
            to_come = Fleet(self._pool_nodes())
            return await self._inventory.ask(
                reports, lambda fleet: check_specs(fleet, tuple(specs), base, needs, to_come=to_come)
            )
        return ()


def ask_of(record: VersionRecord, curves: Curves | None = None) -> Ask:
    """What one container of a version needs."""
    return Ask.of(
        record.spec,
        function=f"{record.tenant}:{record.app}.{record.function}",
        tenant=record.tenant,
        curves=curves,
        base=record.base,
        needs=record.needs,
        artifacts=record.artifacts,
        environment=record.environment,
    )


def kinds(fleet: Fleet, ask: Ask) -> tuple[SliceKindInfo, ...]:
    """The kinds of slices that could hold an ask; `software` marks those of fake GPUs only."""
    real = {unit.gpu.device.name for unit in fleet.units.values() if unit.gpu is not None and not unit.gpu.software}
    software = {unit.gpu.device.name for unit in fleet.units.values() if unit.gpu is not None} - real
    return tuple(msgspec.structs.replace(kind, software=kind.gpu in software) for kind in slice_kinds(fleet, ask))


def check_specs(
    fleet: Fleet,
    specs: tuple[FunctionSpec, ...],
    base: str = DEFAULT_BASE,
    needs: FunctionNeeds = NO_NEEDS,
    *,
    to_come: Fleet | None = None,
) -> tuple[str, ...]:
    """As `FleetPlacements.check`, for a known fleet, and the kinds of nodes that pools may launch.

    Raises:
        BadInput: names the function and the option.
    """
    launched = {
        spec.name
        for spec in specs
        if to_come is not None and could_hold(to_come, Ask.of(spec, base=base, needs=needs.get(spec.name)))
    }
    specs = tuple(spec for spec in specs if spec.name not in launched)
    for spec in specs:
        found = place(fleet, ask := Ask.of(spec, base=base, needs=needs.get(spec.name)))
        if isinstance(found, NoFit) and found.never:
            sentence = as_sentence(f"{spec.name} can never run here: {found.reason}")
            raise BadInput(sentence, field=obstacle(fleet, ask))
    warnings = (floor_warning(fleet, spec, Ask.of(spec, base=base, needs=needs.get(spec.name))) for spec in specs)
    return tuple(warning for warning in warnings if warning)


def floor_warning(fleet: Fleet, spec: FunctionSpec, ask: Ask) -> str:
    """The warning about a floor of containers as asked for that the fleet could not hold; else ""."""
    if spec.min_containers < 2 or (held := most_containers(fleet, ask)) >= spec.min_containers:
        return ""
    return (
        f"{spec.name}: of min_containers={spec.min_containers} only {held} can ever run here: "
        f"the fleet has {fleet.describe()}, and no room for more of them even if all of it were free."
    )


LET_GO: dict[str, dict[str, Any]] = {
    "vram": {"vram": 1},  # unlike 0, which only whole devices hold
    "memory": {"memory": 0},
    "cpu": {"cpu": 0},
    "region": {"regions": ()},
    "zone": {"zones": ()},
    "spot": {"purchase": Purchase.ANY},
    "base": {"base": ""},
    "artifacts": {},
    "shm": {"shm": 0},
    "scratch": {"scratch": 0},
    "pids": {"pids": 0},
    "tags": {},
    "warm": {},
    "max_units": {},
    "network": {},
    "requirements": {},
    "isolation": {"isolation": Isolation.SHARED},
    "slo": {"slo_ms": None},
}
"""By option, changes to an ask that remove its demand. What remains is the GPUs' kind and number."""
FEATURE_OF = {
    "artifacts": ARTIFACTS,
    "shm": SANDBOX_LIMITS,
    "scratch": SANDBOX_LIMITS,
    "pids": SANDBOX_LIMITS,
    "tags": USAGE_TAGS,
    "warm": WARM_WINDOWS,
    "max_units": MAX_UNITS,
    "network": NETWORK,
    "requirements": REQUIREMENTS,
}
"""The feature of its agent that an option needs, which is let go with it."""


def _without(ask: Ask, option: str) -> dict[str, Any]:
    """The changes that let go of an option."""
    feature = FEATURE_OF.get(option)
    if feature is None:
        return LET_GO[option]
    return LET_GO[option] | {"needs": tuple(name for name in ask.needs if name != feature)}


def obstacle(fleet: Fleet, ask: Ask) -> str:
    """The option without which the fleet could hold an ask.

    If several options are impossible only together, the first that is so by itself; else "gpu".
    """
    for option in LET_GO:
        if could_hold(fleet, replace(ask, **_without(ask, option))):
            return option
    nothing = {name: value for without in LET_GO.values() for name, value in without.items()} | {"needs": ()}
    if not could_hold(fleet, replace(ask, **nothing)):
        return "gpu"
    for option in LET_GO:
        kept = {name: getattr(ask, name) for name in LET_GO[option]}
        if (feature := FEATURE_OF.get(option)) in ask.needs:
            kept["needs"] = (feature,)
        alone = nothing | kept
        if not could_hold(fleet, replace(ask, **alone)):
            return option
    return "gpu"
