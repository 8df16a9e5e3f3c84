"""The reactive scaling policy: how many containers a version should have, and which may be drained.

    up    at once: running and waiting calls, over what a container holds at the target utilisation; the queue counts
          as the containers that would drain it within `WAIT_TARGET_S`, never more than it can occupy
    zero calls that were turned away or came too late since the last word count as waiting ones, once each
    level with a service level and a known curve: as many as carry the arriving calls at a p95 within it
    pace  with a level of tokens: as many as the pressure of its engines asks for (`engines/token_pressure`)
    down  only containers idle for the whole scale-down window, never below the floor, and none while the version's
          home is silent; how many at a time is `scale_down_pace`'s

How long a call takes is not known before the first one has ended: until then the longest running one has taken so
long, and before a first container is ready a call is taken to last as long as a start, since in that time another
container could be there.

A starting container counts as a present one, so a slow start is not answered by more starts, and it has no idle time,
so a load longer than any window is never interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from pilotlight_autoscaler.policy.engines.token_pressure import wanted_by_pace
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_core.model.rollouts.capacity import ArmCapacity
from pilotlight_core.model.scaling.scale_bounds import ScaleBounds
from pilotlight_core.model.scaling.scale_record import deployed
from pilotlight_core.model.spec import FunctionSpec

WAIT_TARGET_S = 0.25
"""The queue is sized to drain within this: half of the default service level for a unary call."""
FIRST_LOAD_S = 1.0
"""How long a start takes, as long as none has ended."""
FLOOR_IDLE_S = 10.0
"""For a floor, only containers that have been idle for so long are drained."""
MIN_RESIDENCY_S = 1.0
"""Idle seconds before a container may be drained for another version's calls."""


@dataclass(frozen=True, kw_only=True)
class VersionSpeed:
    """Items per second within the service level: of each present container, and of another one at best."""

    there: tuple[float, ...]
    next: float


@dataclass(frozen=True, kw_only=True)
class VersionView:
    """One version as the policy sees it. `containers` are those that do not drain, `pending` binds not yet reported."""

    spec: FunctionSpec
    deployed: bool
    demand: Demand | None
    containers: Sequence[ContainerReport]
    pending: int = 0
    leaving: int = 0
    """Containers that drain: calls may run in them too."""
    parked: Sequence[ContainerReport] = ()
    """Containers that have no slice, and take no calls until they are unparked."""
    home_is_silent: bool = False
    """Whether its home had calls when it was last heard of, a while ago."""
    is_shut_down: bool = False
    """Whether nothing of it should run."""
    bounds: ScaleBounds | None = None
    """What holds now, where that is not its spec: people's word, a warm window; None: its spec."""
    arm: ArmCapacity | None = None
    """What it keeps as a side of a rollout that runs; None: it is none."""
    unfunded: str = ""
    """The budget that is used up, in words: nothing of it is kept without calls. "": there is money."""
    floor_most: int | None = None
    """The floor that its tenant's limit allows; None: all of it."""
    rate: float = 0.0
    """Calls per second that arrive."""
    speed: VersionSpeed | None = None
    """None without a service level or a known curve."""
    slots: int = field(init=False)
    """Calls that a container takes at once."""
    paced: int = field(init=False)
    """Containers that the pace of its tokens asks for; 0: none beyond what calls ask for."""
    wanted: int = field(init=False)
    """Containers for the present calls, before floor, buffer and ceiling."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", self.spec.slots_of_all)
        paced = wanted_by_pace(self.spec.slo, self.containers) if self.is_kept and not self.unfunded else 0
        object.__setattr__(self, "paced", paced)
        object.__setattr__(self, "wanted", max(wanted_by_demand(self), wanted_by_level(self), paced))

    @property
    def size(self) -> int:
        return len(self.containers) + self.pending

    @property
    def is_kept(self) -> bool:
        """Whether its containers go by and by: it is deployed, or a side of a rollout. Others only end their calls."""
        return self.deployed or self.arm is not None

    @property
    def floor(self) -> int:
        """Containers that stay at any demand; a superseded version has none."""
        if not self.deployed or self.is_shut_down or self.unfunded:
            return 0
        least = self.spec.min_containers if self.bounds is None else self.bounds.least
        return least if self.floor_most is None else min(least, self.floor_most)

    @property
    def ceiling(self) -> int:
        return self.spec.max_containers if self.bounds is None else self.bounds.most

    @property
    def buffer(self) -> int:
        """Containers beyond those that calls need, while there are any."""
        if self.unfunded:
            return 0
        return self.spec.buffer_containers if self.bounds is None else self.bounds.buffer

    @property
    def window_s(self) -> float:
        """Seconds without calls after which a container goes."""
        return self.spec.scaledown_window if self.bounds is None else self.bounds.window_s

    @property
    def zero_window_s(self) -> float:
        """The same of the last one."""
        return float(deployed(self.spec, "zero_window")) if self.bounds is None else self.bounds.zero_window_s

    @property
    def is_foretold(self) -> bool:
        """Whether what its function's past foretells may keep or start containers."""
        if self.unfunded:
            return False
        return bool(deployed(self.spec, "forecast")) if self.bounds is None else self.bounds.forecast

    @property
    def steady_floor(self) -> int:
        """What of the floor is there without a warm window."""
        return self.floor if self.bounds is None else min(self.floor, self.bounds.steady)


def load_s(view: VersionView) -> float:
    """How long a first start of the version takes, at least: as long as those under way have taken."""
    starting = [each.age_s for each in view.containers if each.state is not ContainerState.READY]
    return first_load_s(max(starting, default=0.0))


def first_load_s(oldest_s: float) -> float:
    """The same, where the oldest start under way has taken so long."""
    return max(FIRST_LOAD_S, oldest_s)


def running_calls(view: VersionView) -> int:
    """The calls that run in a version's containers, by their reports or by the word of its home."""
    running = sum([container.running for container in view.containers])
    if view.demand is None:
        return running
    # What ran in a container that is gone runs nowhere: the demand has not heard of its end yet.
    return max(running, min(view.demand.running, (view.size + view.leaving) * view.slots))


def wanted_by_demand(view: VersionView) -> int:
    """Containers for the present demand, before floor, buffer and ceiling."""
    running, queued = running_calls(view), 0
    if view.demand is not None:
        # A report newer than the demand shows calls that the demand still counts as queued: count them once.
        asking = max(view.demand.queued + view.demand.refused_calls + view.demand.late, int(view.demand.refused))
        if asking:
            reported = sum([container.running for container in view.containers])
            queued = max(0, asking - max(0, reported - view.demand.running))
    return wanted_for(queued, running, view.slots, _service_s(view) if queued else 0.0)


def wanted_for(asking: int, running: int, slots: int, service_s: float) -> int:
    """Containers for running calls and for those that ask for room, each of which takes so long; 0.0: nobody knows."""
    # One call never needs a second container: headroom comes from buffer_containers, not from rounding.
    holding = holding_of(running, slots)
    if not asking:
        return holding
    most = math.ceil(asking / slots)
    draining = math.ceil(asking * service_s / (slots * WAIT_TARGET_S)) if service_s else 1
    return max(1, holding + min(most, draining))


def holding_of(running: int, slots: int) -> int:
    """Containers of so many slots each that hold running calls at the target utilisation."""
    return math.floor((running - 1) / (slots * TARGET_UTILISATION)) + 1 if running else 0


def most_running(containers: int, slots: int) -> int:
    """Running calls for which no more containers are wanted than these."""
    most = max(0, math.ceil(containers * slots * TARGET_UTILISATION))
    return most if holding_of(most, slots) <= containers else most - 1


def _service_s(view: VersionView) -> float:
    """How long a call takes; 0.0: nobody knows, but a container is there, and will tell sooner than another starts."""
    if view.demand is None:
        return 0.0
    is_ready = any(each.state is ContainerState.READY for each in view.containers)
    return call_s(view.demand.service_ms, view.demand.oldest_run_ms, 0.0 if is_ready else load_s(view))


def call_s(service_ms: float, oldest_run_ms: float, start_s: float) -> float:
    """How long a call takes, by what calls took so far; before one has ended, as long as the oldest one runs.

    Args:
        start_s: how long a start takes, if no container is ready.
    """
    return service_ms / 1000.0 or max(oldest_run_ms / 1000.0, start_s)


def wanted_by_level(view: VersionView) -> int:
    """Containers whose throughput within the service level, used to the target, carries the arriving calls.

    The place of the next container is unknown: the best slice is assumed, and the next pass sees the real one.
    """
    if view.speed is None or not view.rate:
        return 0
    needed = view.rate / TARGET_UTILISATION
    for count, carried in enumerate(accumulate(sorted(view.speed.there, reverse=True)), start=1):
        if carried >= needed:
            return count
    return len(view.speed.there) + max(1, math.ceil((needed - sum(view.speed.there)) / view.speed.next))


def is_idle(container: ContainerReport, at_least_s: float) -> bool:
    """Whether it has been ready without calls for `at_least_s` seconds."""
    return container.state is ContainerState.READY and not container.running and container.idle_s >= at_least_s


def to_drain(view: VersionView, count: int) -> list[ContainerReport]:
    """The containers beyond `count` that may be drained: idle for the window, the longest idle first.

    Of one that is kept none goes that has been ready for less time than its start took, and the last one only after the
    window of the last.
    """
    surplus = view.size - count
    if surplus <= 0 or view.home_is_silent:
        return []
    if not view.is_kept:
        return _longest_idle([each for each in view.containers if is_idle(each, MIN_RESIDENCY_S)], surplus)
    return due_ones(view.containers, view.size, count, view.window_s, view.zero_window_s)


def due_ones(
    containers: Iterable[ContainerReport], size: int, count: int, window_s: float, zero_window_s: float
) -> list[ContainerReport]:
    """The same of the containers of a deployed version, of which there are `size` with those that start."""
    idle = [each for each in containers if is_idle(each, window_s) and not _is_young(each)]
    due = _longest_idle(idle, size - count)
    if len(due) == size and not is_idle(due[-1], zero_window_s):
        due.pop()
    return due


def _longest_idle(idle: list[ContainerReport], most: int) -> list[ContainerReport]:
    return sorted(idle, key=lambda c: (-c.idle_s, c.id))[:most]


def beyond_ceiling(view: VersionView) -> list[ContainerReport]:
    """The idle containers beyond a ceiling that was lowered, which need not have been idle for their window."""
    if view.home_is_silent or view.size <= view.ceiling:
        return []
    idle = [container for container in view.containers if is_idle(container, MIN_RESIDENCY_S)]
    return sorted(idle, key=lambda c: (-c.idle_s, c.id))[: view.size - view.ceiling]


def beyond_funds(view: VersionView, count: int) -> list[ContainerReport]:
    """The idle containers beyond `count` of a version for which there is no money: each costs while it is there."""
    if not view.unfunded or view.home_is_silent or view.size <= count:
        return []
    return idle_ones(view, 0.0)[: view.size - count]


def _is_young(container: ContainerReport) -> bool:
    start_s = sum(container.timeline.values()) / 1000.0
    return container.age_s - start_s < start_s


def may_give_way(view: VersionView, at_least_s: float = MIN_RESIDENCY_S) -> list[ContainerReport]:
    """Idle containers beyond the floor of a version without queued calls."""
    return idle_ones(view, at_least_s)[: max(0, view.size - view.floor)]


def idle_ones(view: VersionView, at_least_s: float = MIN_RESIDENCY_S) -> list[ContainerReport]:
    if view.demand is not None and view.demand.waiting:
        return []
    return sorted((c for c in view.containers if is_idle(c, at_least_s)), key=lambda c: (-c.idle_s, c.id))
