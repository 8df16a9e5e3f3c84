"""The simulation: functions over a fleet on a virtual clock, with the controller's own decisions.

Functions touch each other only through the fleet. So each is moved alone, up to the instant at which its policy is to
be asked or the end of its minute, and those questions are answered in the order of their instants. That is why a day of
thousands of functions takes minutes: nothing is looked at that has not changed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heapreplace

from pilotlight_autoscaler.policy.plain_wish import PlainWish
from pilotlight_autoscaler.simulator.results.simulation_result import SimulationResult
from pilotlight_autoscaler.simulator.runs.call_steps import move_by_calls
from pilotlight_autoscaler.simulator.runs.count_steps import move_by_counts
from pilotlight_autoscaler.simulator.runs.function_run import PASS_S, FunctionRun
from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer
from pilotlight_autoscaler.simulator.runs.simulated_function import SimulatedFunction
from pilotlight_autoscaler.simulator.simulated_fleet import GpuGroup, SimulatedFleet
from pilotlight_autoscaler.simulator.simulated_policy import IdleContainer, SimulatedPolicy
from pilotlight_autoscaler.simulator.simulated_warmth import SimulatedWarmth
from pilotlight_autoscaler.simulator.traffic.function_traffic import MINUTE_S, FunctionTraffic
from pilotlight_placement.asks.options import Prices

RETRY_S, LONGEST_RETRY_S = 1.0, 5.0
"""How long a function without a place waits for the next try: longer each time, up to a bound."""
IDLE_KNOWN_S = 5.0
"""How long the idle containers are known that may give way to others: to list them takes as long as a pass."""


@dataclass(kw_only=True)
class Simulation:
    runs: list[FunctionRun]
    fleet: SimulatedFleet
    policy: SimulatedPolicy
    minutes: int
    result: SimulationResult
    every_s: float = math.inf
    """Each policy is asked so often at least: slow, and the same but for the instants of single passes."""
    warm_bytes: int = 0
    """Of each node's memory, for parked containers."""
    warmth: SimulatedWarmth = field(init=False)
    _idle: deque[IdleContainer] = field(default_factory=deque)
    """Of all functions, the longest idle first; what had calls since then is told apart."""
    _idle_until: float = -math.inf

    def __post_init__(self) -> None:
        self.warmth = SimulatedWarmth(self.fleet, self.warm_bytes, self.result.timeline, self.policy.chance_of)

    def run(self, progress: Callable[[float], None] = lambda _: None) -> SimulationResult:
        """Run to the end; `progress` is told the virtual time of every step. May be interrupted at any time."""
        end = self.minutes * MINUTE_S
        self.fleet.expect(run.function.ask for run in self.runs)
        queue = [(self._wakes_at(run, 0), number) for number, run in enumerate(self.runs)]
        heapify(queue)
        while queue:
            at, number = queue[0]
            if at >= end:
                break
            self.result.at = at
            progress(at)
            run = self.runs[number]
            self._move(run, at)
            is_asleep = run.is_asleep and run.at >= run.minute_end
            heapreplace(queue, (self._wakes_at(run, int(run.at // MINUTE_S)) if is_asleep else run.at, number))
        self.result.at = end
        self.warmth.finish(end)
        for run in self.runs:
            if run.minute_end:
                self._observe(run, run.minute_end)
        return self.result

    def _wakes_at(self, run: FunctionRun, minute: int) -> float:
        """When something happens to a function that has nothing but calls to come, from a minute on."""
        if run.look_at < math.inf:
            return run.look_at
        if self.policy.is_foretold(run):
            return minute * MINUTE_S
        found = run.traffic.next_minute(minute)
        return math.inf if found is None else found * MINUTE_S

    def _move(self, run: FunctionRun, at: float) -> None:
        """Answer the question that is due, then move the function to its next one, or to the end of its minute."""
        if at >= run.minute_end:
            self._begin_minute(run, at)
        elif run.look_at <= run.at:
            self._decide(run, run.at, is_foretold=run.foretold)
        if not run.is_asleep:
            run.look_at = min(run.look_at, max(run.at, run.looked_at + self.every_s))
        if run.by_counts:
            move_by_counts(run, run.minute_end)
        else:
            move_by_calls(run, run.minute_end)

    def _begin_minute(self, run: FunctionRun, at: float) -> None:
        """End the minute of a function, and ask its policy about the next one if it may want something then."""
        ended = run.minute_end
        run.begin_minute(int(at // MINUTE_S))
        before, run.foretold = run.foretold, self.policy.end_minutes(run, run.at)
        run.ahead_seen = 0
        if not run.foretold and not run.running and not run.queued:
            run.wanted = min(run.wanted, run.function.spec.min_containers)
        if run.running or run.queued or before or run.foretold or run.look_at <= run.at:
            self._decide(run, run.at, is_foretold=before or run.foretold)
        elif run.look_at > run.at + PASS_S:
            run.arrivals = 0  # the policy has seen them
        if ended:
            self._observe(run, ended)

    def _decide(self, run: FunctionRun, at: float, *, is_foretold: int = 0) -> None:
        """Ask the policy and act; `is_foretold`: whether what is foretold is, or was, more than nothing."""
        run.drop_late(at)
        is_asked = is_foretold or at >= run.drain_at or not run.has_enough or self.every_s < math.inf
        if not is_asked and self.policy.on_running(run, at):
            run.on_known(at, self.policy.needed(run))
            run.foretold = self.policy.foretold(run)
            return
        is_new = run.looked_at < run.minute_end - MINUTE_S
        if run.blocked_tries and not is_new and self.fleet.is_full_for(run.function.ask) and at < run.drain_at:
            run.blocked_tries += 1
            run.look_at = at + min(RETRY_S * run.blocked_tries, LONGEST_RETRY_S)
            return
        wish = self.policy.wish(run, at)
        run.wanted = wish.containers
        missing = run.wanted - run.size
        blocked = missing > 0 and self._start(run, wish, at) < missing
        if at >= run.drain_at or run.is_stuck:
            self._drain(run, wish, at)
        run.blocked_tries = run.blocked_tries + 1 if blocked else 0
        run.foretold = self.policy.foretold(run)
        run.on_looked(at, self.policy.needed(run))
        if blocked:
            run.look_at = min(run.look_at, at + min(RETRY_S * run.blocked_tries, LONGEST_RETRY_S))

    def _start(self, run: FunctionRun, wish: PlainWish, at: float) -> int:
        """Start the containers that are missing, or as many as there are places for; how many."""
        woken = self.warmth.unpark(run, wish.containers - run.size, at)
        if woken:
            run.on_unpark(at)
        for container in woken:
            run.begin(container)
        missing = wish.containers - run.size
        is_full = missing <= 0 or self.fleet.is_full_for(run.function.ask)
        started = [] if is_full else self._start_new(run, missing, at)
        while len(started) < missing and run.queued and self._preempt(run, at):
            more = self._start_new(run, 1, at)
            if not more:
                break
            started += more
        for container in started:
            run.begin(container)
        if started:
            self.policy.on_start(run, wish, at)
        elif woken:
            self.policy.on_unpark(run, wish, at)
        run.sums.starts += len(started)
        run.sums.unparks += len(woken)
        self.result.timeline.count(at, len(started) + len(woken))
        return len(started) + len(woken)

    def _start_new(self, run: FunctionRun, count: int, at: float) -> list[SimulatedContainer]:
        started = self.fleet.start(run.function, count, at)
        self.warmth.end(self.fleet.ended, at)
        return started

    def _preempt(self, run: FunctionRun, at: float) -> bool:
        """End idle containers of others, so that one of a function whose calls wait has a place; whether there are."""
        if at >= self._idle_until:
            self._idle_until = at + IDLE_KNOWN_S
            self._idle = self.policy.idle_containers((r for r in self.runs if r.ready and r is not run), at)
        victims = self.policy.victims(self.fleet.fleet, run, self._idle, at)
        for container, other in victims:
            self._end(other, other.remove({container.id}), at, for_tenant=run.function.tenant)
            other.covered = min(other.covered, other.running)
        return bool(victims)

    def _drain(self, run: FunctionRun, wish: PlainWish, at: float) -> None:
        if leaving := self.policy.leaving(run, wish, at):
            self._end(run, run.remove(leaving), at)
        self._set_drain(run, wish, at)

    def _end(self, run: FunctionRun, gone: list[SimulatedContainer], at: float, *, for_tenant: str = "") -> None:
        """Idle containers leave their slices, for a tenant if they have to: they are parked, if that is worth it."""
        for container in gone:
            held = self.fleet.release(container)
            is_parked = self.warmth.park(run, held, at, for_tenant=for_tenant)
            run.sums.add_container(container, at)
            run.sums.unused += not container.calls and not is_parked
        run.sums.drains += len(gone)
        self.result.timeline.count(at, len(gone))

    def _set_drain(self, run: FunctionRun, wish: PlainWish, at: float) -> None:
        """When the next idle container may go."""
        run.drain_at = max(run.due_at(), self.policy.next_leave_at(run, at), wish.holds_until)
        again_s = self.policy.next_look_s(run, at) if run.drain_at <= at else 0.0
        if again_s:
            run.drain_at = at + again_s
        run.is_stuck = run.drain_at <= at
        if run.is_stuck:
            run.drain_at = math.inf

    def _observe(self, run: FunctionRun, minute_end: float) -> None:
        """The end of a function's minute, for the picture of all."""
        self.result.timeline.observe(
            int(minute_end // MINUTE_S) - 1, wanted=run.wanted, ready=len(run.ready), starting=len(run.starting)
        )


def simulation_of(
    functions: Iterable[tuple[SimulatedFunction, FunctionTraffic]],
    groups: Iterable[GpuGroup],
    prices: Prices | None = None,
    *,
    minutes: int,
    seed: int = 0,
    warm_bytes: int = 0,
) -> Simulation:
    """A simulation of functions with their traffic on a fleet, over so many minutes.

    `warm_bytes` of each node are for parked containers.
    """
    runs = [FunctionRun(function, traffic, seed=str(seed)) for function, traffic in functions]
    result = SimulationResult(runs=runs, minutes=minutes)
    return Simulation(
        runs=runs, fleet=SimulatedFleet(groups, prices), policy=SimulatedPolicy(), minutes=minutes, result=result,
        warm_bytes=warm_bytes,
    )  # fmt: skip
