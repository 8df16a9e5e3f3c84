"""One function in a simulation: its containers, its queue, and when its policy is to be asked again.

It stands for the home (which call gets which container when) and for what the controller hears of it. `call_steps`
moves it from call to call, `count_steps` by counts where calls are too many. Nothing else in the simulation changes it
but `Simulation`, which gives it containers and takes idle ones away; so functions can be moved one after the other,
each up to its next question to the policy.

The policy is asked when a minute begins, and when there is more to hold than it knows of: at once when calls begin to
wait, else a pass later (`PASS_S`). What it wants is taken to rise with the load, so with less there is nothing to ask
but whether an idle container is to go, and that is known beforehand: `drain_at`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from heapq import heappush
from random import Random

from pilotlight_autoscaler.observations.call_rate import RATE_SMOOTHING_S
from pilotlight_autoscaler.policy.plain_wish import PlainVersion
from pilotlight_autoscaler.policy.scaling_policy import holding_of, most_running
from pilotlight_autoscaler.simulator.runs.function_sums import FunctionSums
from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedClock, SimulatedContainer
from pilotlight_autoscaler.simulator.runs.simulated_function import SimulatedFunction
from pilotlight_autoscaler.simulator.traffic.function_traffic import MINUTE_S, FunctionTraffic, TimedCall
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.scaling.scale_record import deployed

PASS_S = 0.25
"""Between two passes of the controller."""
FOUND_S = 1.0
"""A call that has waited for no longer found what serves again now; by counts, a step is so long."""
AGAIN_S = 5.0
"""How long the policy is not asked about a queue that does not grow."""
MOST_QUEUED = 1_000
"""Calls of one tenant and class that may wait (the gateway's `QueueLimits.per_flow`); the next ones are refused."""
RATE_SEEN_S = 5 * RATE_SMOOTHING_S
"""What came before makes no difference to the rate of arrivals."""
SMOOTHING = 0.05
"""Weight of the newest service time (the gateway's `call_admission.SMOOTHING`)."""
FLUID_ABOVE = 10.0
"""Calls per second above which a function is moved by counts ..."""
CALLS_BELOW = 5.0
"""... until it has fewer."""


RunningCall = tuple[float, int, SimulatedContainer, float]
"""When it ends, its number, where it runs, and how long it takes."""


class QueuedBatch:
    """Calls that came at one time and wait: one, or a step's."""

    __slots__ = ("at", "count", "duration_s", "is_cold")

    def __init__(self, at: float, count: int, duration_s: float, *, is_cold: bool) -> None:
        self.at = at
        self.count = count
        self.duration_s = duration_s
        self.is_cold = is_cold


class FunctionRun:
    def __init__(self, function: SimulatedFunction, traffic: FunctionTraffic, *, seed: str = "") -> None:
        self.function = function
        self.traffic = traffic
        self.sums = FunctionSums()
        self.dice = Random(f"{seed}/{function.key}")
        self.slots = function.spec.slots
        self.seen = PlainVersion(function.spec)
        """As its policy saw it last."""
        self.is_foretold = bool(deployed(function.spec, "forecast"))
        self.clock = SimulatedClock()
        """When its policy was asked last; its containers have their ages by it."""
        self.at = 0.0
        """How far it has been moved."""
        self.minute_end = 0.0
        self.by_counts = False
        self.calls: list[TimedCall] = []
        """Of the present minute, if not by counts."""
        self.next_call = 0
        self.left = 0
        """Calls of the present minute that are still to come, if by counts."""
        self.mean_s = function.duration_s

        self.ready: list[SimulatedContainer] = []
        self.starting: deque[SimulatedContainer] = deque()
        self.new: list[SimulatedContainer] = []
        """Those that have become ready since the policy was asked last."""
        self.idle_stack: list[SimulatedContainer] = []
        """By counts: the idle ones, the longest idle first. `busy_stack` has the others."""
        self.busy_stack: list[SimulatedContainer] = []
        self.open: list[tuple[int, SimulatedContainer]] = []
        """Call by call, with one slot each: the free ones, a heap by age."""
        self.ends: list[RunningCall] = []
        """Call by call: what runs, a heap by end."""
        self.waiting: deque[QueuedBatch] = deque()
        self.queued = 0
        self.running = 0
        self.granted = 0

        self.hold_s: float | None = None
        """The home's smoothed service time; None before a call has ended."""
        self.ended = 0
        self.ended_at = -math.inf
        """When a call ended last."""
        self.first_grant_at = math.inf
        self.refused = 0
        """Calls that were turned away since the policy was asked last; `late` ones left the queue since then."""
        self.late = 0
        self.arrivals = 0
        self.rate_before, self.rate_at = 0.0, 0.0
        """Calls per second as of an instant; those that came one by one since then are counted when it is asked for."""

        self.look_at = 0.0 if function.spec.min_containers else math.inf
        """When the policy is to be asked."""
        self.looked_at = -math.inf
        self.covered = 0.0
        """The most running calls that ask for no container more, and need none more than was seen in this minute."""
        self.covered_queue = 0
        """What waited when the policy was asked last."""
        self.foretold = 0
        """Containers that its past asks for in this minute."""
        self.ahead_seen = 0
        """How many of them were seen to be there for nothing else in this minute."""
        self.drain_at = math.inf
        """No idle container is due before."""
        self.is_stuck = False
        """Whether containers are due that were still wanted."""
        self.blocked_tries = 0
        """How often in a row there was no place for a container of it."""
        self.wanted = 0

    @property
    def size(self) -> int:
        return len(self.ready) + len(self.starting)

    @property
    def idle(self) -> Iterable[SimulatedContainer]:
        return self.idle_stack if self.by_counts else (each for each in self.ready if not each.running)

    @property
    def is_asleep(self) -> bool:
        """Whether nothing happens until its next call."""
        return not (self.ready or self.starting or self.queued or self.look_at < math.inf)

    # --- minutes ---

    def begin_minute(self, minute: int) -> None:
        """Take the calls of a minute; everything before it is over."""
        self.at = max(self.at, minute * MINUTE_S)
        self.rate_before, self.rate_at = self.rate(self.at), self.at
        self.minute_end = (minute + 1) * MINUTE_S
        self.covered, self.covered_queue = 0.0, 0
        count = self.traffic.count(minute)
        rate = count / MINUTE_S
        if self.by_counts and rate < CALLS_BELOW:
            self._take_apart()
        elif not self.by_counts and rate > FLUID_ABOVE:
            self._put_together()
        if self.by_counts:
            self.left = count
            self.mean_s = self.traffic.mean_s(minute) if count else self.mean_s
        else:
            self.calls, self.next_call = (self.traffic.calls(minute) if count else []), 0

    def _put_together(self) -> None:
        """From calls to counts."""
        self.by_counts = True
        self.calls, self.next_call, self.ends, self.open = [], 0, [], []
        self.busy_stack = [each for each in self.ready if each.running]
        self.idle_stack = sorted((c for c in self.ready if not c.running), key=lambda c: (c.idle_since, -c.number))

    def _take_apart(self) -> None:
        """From counts to calls."""
        self.share_out()
        self.by_counts = False
        self.left = 0
        for container in self.busy_stack:
            for _ in range(container.running):
                duration_s = self.draw_s()
                heappush(self.ends, (self.at + duration_s, self.next_grant(), container, duration_s))
        self.open = [(c.number, c) for c in self.ready if self.slots == 1 and not c.running]
        self.open.sort()
        self.waiting = deque(
            QueuedBatch(each.at, 1, self.draw_s(), is_cold=each.is_cold)
            for each in self.waiting
            for _ in range(each.count)
        )

    def share_out(self) -> None:
        """Let the busy containers hold what runs, if by counts: of several slots each, about as many each."""
        if self.by_counts and self.slots > 1 and self.busy_stack:
            each, more = divmod(self.running, len(self.busy_stack))
            for number, container in enumerate(self.busy_stack):
                container.running = each + (number < more)

    def draw_s(self) -> float:
        """How long a call takes, of those of the present minute."""
        return self.dice.expovariate(1.0 / self.mean_s)

    def next_grant(self) -> int:
        self.granted += 1
        return self.granted

    # --- what the policy hears ---

    def rate(self, at: float) -> float:
        """Calls per second that arrive, smoothed as the controller does it."""
        found = self.rate_before * math.exp((self.rate_at - at) / RATE_SMOOTHING_S)
        number, since = self.next_call, at - RATE_SEEN_S
        while number and (came_at := self.calls[number - 1][0]) > since:
            found += math.exp((came_at - at) / RATE_SMOOTHING_S) / RATE_SMOOTHING_S
            number -= 1
        return found

    def on_arrivals(self, calls: int, at: float) -> None:
        """So many have come since the last step, by counts."""
        elapsed = at - self.rate_at
        newest = calls / elapsed if elapsed > 0.0 else 0.0
        self.rate_before = newest + (self.rate_before - newest) * math.exp(-elapsed / RATE_SMOOTHING_S)
        self.rate_at = at

    def on_wait(self, at: float) -> None:
        """Calls begin to wait, or more do."""
        if not self.blocked_tries and self.size < self.function.spec.max_containers:
            if not self.covered_queue:
                self.look_at = min(self.look_at, at)
            elif self.queued > self.covered_queue:
                self.look_at = min(self.look_at, max(at, self.looked_at + PASS_S))

    def on_more(self, at: float) -> None:
        """More calls run than the policy knows of."""
        if not self.blocked_tries:
            self.look_at = min(self.look_at, max(at, self.looked_at + PASS_S))

    def on_fewer(self, at: float) -> None:
        """Calls have ended: what was due may go now, and a container may become due."""
        if self.foretold - holding_of(self.running, self.slots) > self.ahead_seen:
            self.look_at = min(self.look_at, max(at, self.looked_at + PASS_S))
        if self.is_stuck:
            self.is_stuck = False
            self.drain_at = max(at, self.looked_at + PASS_S)
            self.look_at = min(self.look_at, self.drain_at)
        elif self.drain_at == math.inf:
            self.drain_at = at + self.function.spec.scaledown_window
            self.look_at = min(self.look_at, self.drain_at)

    def on_ended(self, duration_s: float, calls: int = 1) -> None:
        """Calls have ended that held their slots for so long."""
        self.ended += calls
        self.ended_at = self.at
        newest = 1.0 / self.ended
        if newest < SMOOTHING:
            newest = SMOOTHING
        if self.hold_s is None:
            self.hold_s = duration_s
            if self.queued:
                self.on_more(self.at)
        else:
            self.hold_s += (1.0 - (1.0 - newest) ** calls) * (duration_s - self.hold_s)

    @property
    def has_enough(self) -> bool:
        """Whether its calls need no container more than there are: none waits, nor was turned away."""
        spec = self.function.spec
        if self.queued or self.refused or self.late or self.blocked_tries:
            return False
        wanted = holding_of(self.running, self.slots) + (spec.buffer_containers if self.running else 0)
        return self.size >= max(wanted, spec.min_containers)

    def on_known(self, at: float, needed: int) -> None:
        """The policy need not be asked, but knows that so many containers were needed in this minute."""
        self.looked_at, self.arrivals, self.look_at = at, 0, self.drain_at
        self._cover(needed)

    def _cover(self, needed: int) -> None:
        spec = self.function.spec
        known = len(self.ready) + len(self.starting) - spec.buffer_containers
        if known > needed:
            known = needed
        self.covered = math.inf if needed >= spec.max_containers else most_running(known, self.slots)

    def on_looked(self, at: float, needed: int) -> None:
        """The policy has been asked, and knows that so many containers were needed in this minute."""
        self.looked_at = at
        self._cover(needed)
        self.covered_queue = self.queued
        if self.foretold:
            ahead = self.foretold - holding_of(self.running, self.slots)
            if ahead > self.ahead_seen:
                self.ahead_seen = ahead
        self.refused = self.late = self.arrivals = 0
        self.look_at = self.drain_at
        if self.queued and at + AGAIN_S < self.drain_at and self.size < self.function.spec.max_containers:
            self.look_at = at + AGAIN_S

    # --- containers ---

    def begin(self, container: SimulatedContainer) -> None:
        """A container starts."""
        function = self.function
        container.version, container.tenant = function.key, function.tenant
        container.function, container.slots, container.clock = function.name, self.slots, self.clock
        starting = self.starting
        if not starting or starting[-1].ready_at <= container.ready_at:
            starting.append(container)
        else:  # one that was parked is ready before others that start
            starting.insert(bisect_right(starting, container.ready_at, key=lambda each: each.ready_at), container)

    def on_unpark(self, at: float) -> None:
        """Parked containers serve again: the calls that have just come found them."""
        for each in self.waiting:
            if each.is_cold and at - each.at <= FOUND_S:
                each.is_cold = False
                self.sums.cold -= each.count

    def take_ready(self) -> SimulatedContainer:
        """The next one of those that start is ready."""
        container = self.starting.popleft()
        container.state = ContainerState.READY
        self.ready.append(container)
        self.new.append(container)
        self.on_fewer(container.ready_at)
        return container

    def take_new(self) -> list[SimulatedContainer]:
        """Those that are there of the new ones, and have not been taken before."""
        if not self.new:
            return self.new
        found, self.new = [each for each in self.new if not each.is_gone], []
        return found

    def has_idle_since(self, at: float) -> bool:
        """Whether one is idle for as long as idle ones stay."""
        window_s = self.seen.window_s
        for each in self.idle_stack if self.by_counts else self.ready:
            idle_s = at - each.idle_since
            if not each.running and (idle_s if idle_s > 0.0 else 0.0) >= window_s:
                return True
        return False

    def due_at(self) -> float:
        """When the first of the idle ones has been there, and idle, for long enough to go."""
        load_s, window_s = self.function.load_s, self.seen.window_s if self.size > 1 else self.seen.zero_window_s
        found = math.inf
        for each in self.idle_stack if self.by_counts else self.ready:
            if each.running:
                continue
            due_at, young_until = each.idle_since + window_s, each.ready_at + load_s
            if due_at < young_until:
                due_at = young_until
            if due_at < found:
                found = due_at
        return found

    def remove(self, containers: set[str]) -> list[SimulatedContainer]:
        """Idle containers go."""
        gone = [each for each in self.ready if each.id in containers]
        for each in gone:
            each.is_gone = True
        self.ready = [each for each in self.ready if not each.is_gone]
        if self.by_counts:
            self.idle_stack = [each for each in self.idle_stack if not each.is_gone]
        else:
            self.open = sorted(entry for entry in self.open if not entry[1].is_gone)
        return gone

    def oldest_wait_s(self, at: float) -> float:
        return max(0.0, at - self.waiting[0].at) if self.waiting else 0.0

    def drop_late(self, at: float) -> None:
        """The calls leave that have waited for as long as they may."""
        timeout_s = self.function.spec.timeout
        while self.waiting and at - self.waiting[0].at > timeout_s:
            gone = self.waiting.popleft()
            self.queued -= gone.count
            self.late += gone.count
            self.sums.late += gone.count

    def choose(self) -> SimulatedContainer | None:
        """The container for the next call, of several slots each, as a home chooses; None: all are full."""
        free = [each for each in self.ready if each.running < self.slots]
        if len(free) <= 1:
            return free[0] if free else None
        if self.running < TARGET_UTILISATION * self.slots * len(self.ready):
            return free[0]
        return min(free, key=lambda each: (each.running, each.number))
