"""What is parked in a simulation: whose it is, where it returns to, and the memory of its node that it has.

By the controller's rules (`policy/warmth.py`) and the nodes' (`core.model.scaling.warm_things`). Nothing of it is
looked at until its function wants containers, or something else is to be parked on its node: what is parked for too
long has ended at its instant all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pilotlight_autoscaler.policy.warmth import stays_s, tier_of
from pilotlight_autoscaler.policy.wish import Warmth
from pilotlight_autoscaler.simulator.results.simulation_result import ContainerTimeline
from pilotlight_autoscaler.simulator.runs.function_run import FunctionRun
from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer
from pilotlight_autoscaler.simulator.simulated_fleet import SimulatedFleet
from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.scaling.warm_things import WarmKind, WarmThing, WarmThings
from pilotlight_placement.hardware.node import PlacedContainer

GIB = 2**30
RETURNS_TO = frozenset({SliceKind.CPU, SliceKind.GPU, SliceKind.MIG})
"""A share of a GPU ends with its container."""


@dataclass(frozen=True, kw_only=True)
class SleepingContainer:
    """A parked container."""

    held: PlacedContainer
    """The slice that it left."""
    run: FunctionRun
    since: float
    ends_at: float


class SimulatedWarmth:
    """`node_bytes` of each node are for what is parked; 0: nothing is. `chance_of` a call in the next minute."""

    def __init__(
        self,
        fleet: SimulatedFleet,
        node_bytes: int,
        timeline: ContainerTimeline,
        chance_of: Callable[[FunctionRun], float],
    ) -> None:
        self._fleet = fleet
        self._node_bytes = node_bytes
        self._timeline = timeline
        self._chance_of = chance_of
        self._at = 0.0
        self._memories: dict[str, WarmThings] = {}
        """By node."""
        self._asleep: dict[str, SleepingContainer] = {}
        self._of: dict[FunctionRun, dict[str, SleepingContainer]] = {}
        """Of each function, the latest parked last."""

    def park(self, run: FunctionRun, held: PlacedContainer, at: float, *, for_tenant: str = "") -> bool:
        """Keep a container that has just left its slice, for calls of this tenant if it had to; whether it is kept."""
        function, self._at = run.function, at
        if not self._node_bytes or not _can_be_parked(run, held, for_tenant):
            return False
        memory = self._memories.setdefault(held.slice.node, WarmThings(self._node_bytes))
        if memory.taken() + function.memory > memory.total:
            self._end_old(memory, at)
        name = held.container
        thing = WarmThing(
            kind=WarmKind.PARKED, name=name, size=function.memory, load_s=function.load_s,
            likelihood=self._chance_of(run), since=at, evict=lambda: self._drop(name, self._at), tenant=function.tenant,
        )  # fmt: skip
        if not memory.take(thing):
            return False
        sleeping = SleepingContainer(held=held, run=run, since=at, ends_at=at + stays_s(function.load_s))
        self._asleep[name] = self._of.setdefault(run, {})[name] = sleeping
        self._fleet.mark_parked(held)
        return True

    def unpark(self, run: FunctionRun, most: int, at: float) -> list[SimulatedContainer]:
        """Have parked containers of a function serve again, if their slices are free; the latest parked first."""
        found: list[SimulatedContainer] = []
        for sleeping in reversed([*self._of.get(run, {}).values()]):
            if sleeping.ends_at <= at:
                self._drop(sleeping.held.container, sleeping.ends_at)
            elif len(found) < most and (woken := self._fleet.unpark(sleeping.held, run.function, at)) is not None:
                self._drop(sleeping.held.container, at)
                found.append(woken)
        return found

    def end(self, containers: Iterable[str], at: float) -> None:
        """These were in the way of others."""
        for name in containers:
            self._drop(name, at)

    def finish(self, at: float) -> None:
        """Count what is there until the end of the simulation."""
        for name, sleeping in list(self._asleep.items()):
            self._drop(name, min(at, sleeping.ends_at))

    def _end_old(self, memory: WarmThings, at: float) -> None:
        for name in memory.names(WarmKind.PARKED):
            if (ends_at := self._asleep[name].ends_at) <= at:
                self._drop(name, ends_at)

    def _drop(self, name: str, at: float) -> None:
        """It is not parked any more since an instant."""
        sleeping = self._asleep.pop(name)
        run, node, until = sleeping.run, sleeping.held.slice.node, min(at, sleeping.ends_at)
        theirs = self._of[run]
        del theirs[name]
        if not theirs:
            del self._of[run]
        self._memories[node].release(WarmKind.PARKED, name)
        self._fleet.forget_parked(sleeping.held)
        run.sums.parked_gib_s += run.function.memory / GIB * (until - sleeping.since)
        self._timeline.count_parked(sleeping.since, until)


def _can_be_parked(run: FunctionRun, held: PlacedContainer, for_tenant: str) -> bool:
    function, slice_ = run.function, held.slice
    if not function.parks or len(slice_.ids) > 1 or slice_.kind not in RETURNS_TO:
        return False
    if slice_.kind is not SliceKind.CPU and for_tenant not in ("", function.tenant):
        return False
    return tier_of(function.spec, function.load_s) is Warmth.PARKED
