"""The controller's own rules over a simulated function: the one place that binds the simulation to them.

What the rules see is what the controller would see of the function: the demand that its home tells, and the reports of
its containers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
from types import ModuleType
from typing import cast

from pilotlight_autoscaler.observations import scaling_memories
from pilotlight_autoscaler.observations.call_rate import RATE_SMOOTHING_S
from pilotlight_autoscaler.observations.scaling_memories import ScalingMemories, SeenFunction
from pilotlight_autoscaler.observations.world import DEMAND_STALE_S
from pilotlight_autoscaler.policy import desired, scale_down_pace, scaling_policy
from pilotlight_autoscaler.policy.plain_wish import CallsWaiting, PlainWish
from pilotlight_autoscaler.policy.prediction import function_memory
from pilotlight_autoscaler.policy.preemption import ALONE, PreemptionSearch, TrialBudget
from pilotlight_autoscaler.policy.scale_down_pace import ScaleDownPace
from pilotlight_autoscaler.policy.scaling_policy import MIN_RESIDENCY_S, VersionView, holding_of, may_give_way
from pilotlight_autoscaler.policy.warmth import UNKNOWN_CHANCE
from pilotlight_autoscaler.simulator.runs.function_run import FunctionRun
from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.node_messages import ContainerReport
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.search.place import has_place

CONSTANTS: Mapping[str, ModuleType] = {
    "WAIT_TARGET_S": scaling_policy,
    "TARGET_UTILISATION": scaling_policy,
    "FIRST_LOAD_S": scaling_policy,
    "STEP_PART": scale_down_pace,
    "STEP_EVERY_S": scale_down_pace,
    "COOLDOWN_S": desired,
    "WORTH": function_memory,
    "QUICK_S": function_memory,
    "MOST_AHEAD": scaling_memories,
}
"""The policy's constants that a simulation may change, and where they stand."""


MOST_SLEPT = 400 * 1_440
"""Minutes without calls that are caught up when a function is called again: all, as nothing is missed here."""
LOOK_S, LONGEST_LOOK_S = 1.0, 2.0
"""Until a function is looked at again whose idle containers are kept for what arrives: a second in a controller."""
MOST_IDLE = 1_000
"""Idle containers that are known at a time, of those that may give way."""
IdleContainer = tuple[SimulatedContainer, FunctionRun]
"""A container and its function."""


@dataclass(kw_only=True)
class SimulatedPolicy:
    memories: ScalingMemories = field(default_factory=ScalingMemories)
    """The unix second of an instant of the simulation is that instant."""
    _pace: ScaleDownPace = field(default_factory=ScaleDownPace)

    def wish(self, run: FunctionRun, at: float) -> PlainWish:
        """How many containers a function should have."""
        seen = seen_of(run, at)
        # They have all that a report has (`SimulatedContainer`).
        new = cast("Sequence[ContainerReport]", run.take_new())
        return self.memories.plain_wish(seen, run.seen, new, at)

    def on_running(self, run: FunctionRun, at: float) -> bool:
        """Have a function's running calls remembered, without a question; whether anything is remembered of it."""
        memory = self.memories.get(run.function.key)
        if memory is not None:
            memory.observe(min(max(holding_of(run.running, run.slots), run.arrivals > 0), run.size), at)
        return memory is not None

    def on_start(self, run: FunctionRun, wish: PlainWish, at: float) -> None:
        """Containers of a function have been started by its wish: what needs them is remembered, as a pass later."""
        memory = self.memories.get(run.function.key)
        if memory is None:
            self.memories.note(seen_of(run, at), (), at)
        else:
            memory.on_up(at)
            memory.observe(min(wish.needed, run.size), at)

    def on_unpark(self, run: FunctionRun, wish: PlainWish, at: float) -> None:
        """Parked containers of a function serve again: none was started, and what needs them is remembered."""
        memory = self.memories.get(run.function.key)
        if memory is not None:
            memory.observe(min(wish.needed, run.size), at)

    def chance_of(self, run: FunctionRun) -> float:
        """How likely a function is called in the next minute, as a pass tells nodes."""
        memory = self.memories.get(run.function.key)
        return memory.chance() if memory is not None else UNKNOWN_CHANCE

    def needed(self, run: FunctionRun) -> int:
        """The most containers that a function's calls have needed in this minute, as far as it is remembered."""
        memory = self.memories.get(run.function.key)
        return memory.needed if memory is not None else 0

    def foretold(self, run: FunctionRun) -> int:
        """How many containers a function's past, or what it has needed in this minute, keeps to its end."""
        memory = self.memories.get(run.function.key)
        return memory.ahead() if memory is not None else 0

    def is_foretold(self, run: FunctionRun) -> bool:
        """Whether what is remembered of a function may ask for containers in a minute without calls."""
        memory = self.memories.get(run.function.key)
        return memory is not None and memory.is_asked and memory.is_known

    def end_minutes(self, run: FunctionRun, at: float) -> int:
        """The minutes before `at` are over; how many containers a function's past foretells for the present one."""
        return self.memories.end_minutes(run.function.key, at, most_missed=MOST_SLEPT)

    def leaving(self, run: FunctionRun, wish: PlainWish, at: float) -> set[str]:
        """The idle containers that go now, of a function whose wish was asked for at this instant."""
        if wish.containers >= run.size or wish.holds_until > at or not run.has_idle_since(at):
            return set()
        run.clock.at = at
        run.share_out()
        # They have all that a report has (`SimulatedContainer`).
        ready = cast("Sequence[ContainerReport]", run.ready)
        return {each.id for each in self._pace.plain_leaving(run.function.key, run.seen, ready, wish.containers, at)}

    def idle_containers(self, runs: Iterable[FunctionRun], at: float) -> deque[IdleContainer]:
        """The containers of these functions that may give way to calls of others, the longest idle first."""
        found = []
        for run in runs:
            spare = {each.id for each in may_give_way(view_of(run, at), MIN_RESIDENCY_S)}
            found += [(each, run) for each in run.idle if each.id in spare] if spare else []
        return deque(nsmallest(MOST_IDLE, found, key=lambda idle: (idle[0].idle_since, idle[0].number)))

    def victims(self, fleet: Fleet, run: FunctionRun, idle: deque[IdleContainer], at: float) -> list[IdleContainer]:
        """The idle containers, with their functions, that end for a function without a place.

        `idle` may be some seconds old: what had calls since then, or is gone, stays out.
        """
        while idle and not _is_idle(idle[0][0], at):
            idle.popleft()
        of_use = fleet.offers(run.function.ask).by_group
        still = ((container, other) for container, other in idle if other is not run and _is_idle(container, at))
        near = {each.id: (each, other) for each, other in islice(_placed(fleet, still, of_use), ALONE)}
        search = PreemptionSearch(fleet=fleet, ask=run.function.ask, fits=has_place, trials=TrialBudget())
        reports = cast("dict[str, tuple[ContainerReport, FunctionRun]]", near)
        found = search.one([(each, other.function.key) for each, other in reports.values()])
        return [near[each.id] for each, _ in found]

    def next_leave_at(self, run: FunctionRun, at: float) -> float:
        """When further containers of a function may go."""
        return self._pace.next_at(run.function.key, at)

    def next_look_s(self, run: FunctionRun, at: float) -> float:
        """Seconds after which fewer containers may carry the calls that arrive; 0: they do now."""
        seen = run.seen
        if seen.size <= seen.wanted:  # else the wish of this instant has asked for it
            seen.rate = 0.0 if _is_silent(run, at) else run.rate(at)
        if seen.carries(run.size - 1):
            return 0.0
        most = TARGET_UTILISATION * (run.size - 1) * run.slots
        load = seen.rate * (run.hold_s or 0.0)
        falls_s = RATE_SMOOTHING_S * math.log(load / most) if most else LONGEST_LOOK_S
        return min(LONGEST_LOOK_S, max(LOOK_S, falls_s))


def _placed(
    fleet: Fleet, idle: Iterable[IdleContainer], groups: Mapping[DeviceGroup, object]
) -> Iterator[IdleContainer]:
    """Those on devices of these groups."""
    for container, run in idle:
        slice_ = fleet.held[container.id].slice
        if fleet.places[slice_.node].by_id[slice_.ids[0]].group in groups:
            yield container, run


def _is_idle(container: SimulatedContainer, at: float) -> bool:
    return not container.is_gone and not container.running and container.idle_since <= at - MIN_RESIDENCY_S


def seen_of(run: FunctionRun, at: float) -> SeenFunction:
    """What is remembered of a function's instant; `run.seen` is as the policy sees it then."""
    seen, key, is_silent = run.seen, run.function.key, _is_silent(run, at)
    run.clock.at, seen.size, seen.rate = at, len(run.ready) + len(run.starting), 0.0
    if is_silent:
        seen.update(None, 0, 0.0)
    else:
        service_ms = 0.0 if run.hold_s is None else run.hold_s * 1000.0
        waiting = _waiting(run, at) if run.queued or run.refused or run.late else None
        seen.update(waiting, run.running, service_ms)
        if seen.size > seen.wanted:
            seen.rate = run.rate(at)
    needed = seen.wanted if seen.wanted < seen.ceiling else seen.ceiling
    if needed < 1 and run.arrivals > 0 and not is_silent:
        needed = 1
    return SeenFunction(key, key, seen.size, needed, seen.window_s, seen.service_ms / 1000.0, run.is_foretold)


def _is_silent(run: FunctionRun, at: float) -> bool:
    """Whether nothing has waited or run for a while, so that its home tells nothing."""
    return not (run.queued or run.running or run.refused or run.late) and at - run.ended_at > DEMAND_STALE_S


def _waiting(run: FunctionRun, at: float) -> CallsWaiting:
    calls = run.queued + run.refused + run.late
    start_s = None if run.ready else at - run.starting[0].began_at if run.starting else 0.0
    return CallsWaiting(run.queued, calls, _oldest_run_s(run, at) * 1000.0, start_s)


def _oldest_run_s(run: FunctionRun, at: float) -> float:
    """For how long the oldest running call runs, as long as none has ended; else 0."""
    return at - run.first_grant_at if run.hold_s is None and run.running else 0.0


def view_of(run: FunctionRun, at: float) -> VersionView:
    """A function as the policy sees it at an instant."""
    run.clock.at = at
    run.share_out()
    # They have all that a report has (`SimulatedContainer`).
    reports = cast("Sequence[ContainerReport]", [*run.ready, *run.starting])
    demand = demand_of_run(run, at)
    rate = run.rate(at) if demand is not None else 0.0
    return VersionView(spec=run.function.spec, deployed=True, demand=demand, containers=reports, rate=rate)


def demand_of_run(run: FunctionRun, at: float) -> Demand | None:
    """What the function's home tells; None: it is silent."""
    if _is_silent(run, at):
        return None
    return Demand(
        version=run.function.key,
        tenant=run.function.tenant,
        gateway="simulation",
        epoch=1,
        queued=run.queued,
        oldest_ms=run.oldest_wait_s(at) * 1000.0,
        running=run.running,
        arrivals=run.arrivals,
        service_ms=(run.hold_s or 0.0) * 1000.0,
        refused_calls=run.refused,
        late=run.late,
        oldest_run_ms=_oldest_run_s(run, at) * 1000.0,
        function=run.function.key,
    )


@contextmanager
def changed_constants(values: Mapping[str, float]) -> Iterator[None]:
    """Within the block the policy's constants have other values, in this process.

    Raises:
        ValueError: there is no such constant, or the value is none for it.
    """
    for name, value in values.items():
        if name not in CONSTANTS:
            raise ValueError(f"{name!r} is no constant of the policy: expected one of {', '.join(CONSTANTS)}")
        if not 0 < value < math.inf:
            raise ValueError(f"{name}: expected a number above 0, not {value:g}")
    before = {name: getattr(CONSTANTS[name], name) for name in values}
    try:
        for name, value in values.items():
            setattr(CONSTANTS[name], name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(CONSTANTS[name], name, value)
