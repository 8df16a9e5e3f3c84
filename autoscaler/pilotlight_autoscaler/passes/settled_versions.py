"""Versions of which nothing is to change, and until when that is so. Pure: time is an argument (seconds).

Most functions have what their calls need. Whether that is still so is seen from how many calls run in how many
containers, which costs a fiftieth of a decision: a version is looked at again when another number of containers would
be needed, when its containers or its function's past have changed, and after some seconds in any case.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotlight_autoscaler.observations.world import NODE_LOST_S, World
from pilotlight_autoscaler.policy.engines.token_pressure import has_pace
from pilotlight_autoscaler.policy.function_view import FunctionView
from pilotlight_autoscaler.policy.scaling_policy import VersionView, holding_of, most_running, running_calls
from pilotlight_autoscaler.policy.wish import ScalingRule, Wish
from pilotlight_core.model.messages.demand import Demand

WAITING_LOOK_S = 8.0
"""About so long a version whose calls wait is not looked at if its home tells the same again and again."""
LOOK_EVERY_S = 64.0
"""About so long after a look there is another one, whatever was missed."""
BY_CALLS_ALONE = frozenset({ScalingRule.CALLS, ScalingRule.BUFFER, ScalingRule.FLOOR, ScalingRule.CEILING})
"""What these ask for changes with the running calls alone."""
KEEPING = frozenset({ScalingRule.COOLDOWN, ScalingRule.CONSOLIDATION})
"""These keep some of what is there beyond that, and ask for no more."""


class SettledVersion(NamedTuple):
    """What a version had when nothing was to change of it."""

    function: str
    slots: int
    size: int
    """Its containers."""
    fewest: int
    most: int
    """Running calls that need just as many containers."""
    ends_at: float


class SteadyWait(NamedTuple):
    """What was known of a version whose calls wait when nothing was to change of it."""

    demand: Demand
    size: int
    """Its containers."""
    running: int
    """The calls in them."""
    ends_at: float


@dataclass(kw_only=True)
class SettledVersions:
    _settled: dict[str, SettledVersion] = field(default_factory=dict)
    _waiting: dict[str, SteadyWait] = field(default_factory=dict)
    _resting: dict[str, float] = field(default_factory=dict)
    """Versions that nobody calls and that have parked containers alone, and until when: nodes have many of them."""

    def __len__(self) -> int:
        return len(self._settled)

    def note(self, version: str, function: FunctionView, wish: Wish, at: float, wall: float) -> None:
        """A pass has looked at a version at `at`, the unix second `wall`, and nothing is to change of it."""
        view = function.versions[version]
        self._waiting.pop(version, None)
        self._resting.pop(version, None)
        is_alone = len(function.versions) == 1 and function.planned is None
        if is_alone and _rests(view, wish):
            self._resting[version] = at + _spread(LOOK_EVERY_S, version)
        if has_pace(view.spec.slo):
            return  # its engines tell something new each second, so nothing of it is ever settled
        if is_alone and view.demand is not None and view.demand.waiting and wish.count == view.size > 0:
            running = sum([each.running for each in view.containers])
            self._waiting[version] = SteadyWait(view.demand, view.size, running, at + _spread(WAITING_LOOK_S, version))
        if not is_alone or not _is_settled(view, wish):
            self._settled.pop(version, None)
            return
        within_s = _spread(LOOK_EVERY_S, version)
        if min(wish.count, wish.declared) < view.size:
            within_s = min(within_s, _stays_s(view))
        if wish.rule is ScalingRule.COOLDOWN:
            within_s = min(within_s, wish.look_again_at - wall)
        needed = holding_of(running_calls(view), view.slots)
        self._settled[version] = SettledVersion(
            function=function.name, slots=view.slots, size=view.size, ends_at=at + within_s,
            fewest=most_running(needed - 1, view.slots) + 1, most=most_running(needed, view.slots),
        )  # fmt: skip

    def forget(self, version: str) -> None:
        """Something is to change of it."""
        self._settled.pop(version, None)
        self._waiting.pop(version, None)
        self._resting.pop(version, None)

    def clear(self) -> None:
        """Anything may have changed."""
        self._settled.clear()
        self._waiting.clear()
        self._resting.clear()

    def unsettled(self, versions: Iterable[str], world: World, at: float) -> set[str]:
        """Those of which a look may find something, as far as can be seen from their calls."""
        return {one for one in versions if not self._holds(one, world, at)}

    def _holds(self, version: str, world: World, at: float) -> bool:
        known = self._settled.get(version)
        if known is None and version in self._resting:
            load = world.index.load(version)
            is_alone = load is None or not load.containers
            return at < self._resting[version] and is_alone and world.demand(version, at) is None
        if known is None:
            return version in self._waiting and self._waits_as_before(version, world, at)
        if at >= known.ends_at:
            return False
        demand, load = world.demand(version, at), world.index.load(version)
        if demand is None or not _is_plain(demand) or load is None or load.containers != known.size:
            return False
        if world.planned.of(known.function, at) is not None:
            return False
        running = max(load.running, min(demand.running, known.size * known.slots))
        return known.fewest <= running <= known.most

    def _waits_as_before(self, version: str, world: World, at: float) -> bool:
        """Whether nothing is new since the last look at a version whose calls wait."""
        known, demand = self._waiting[version], world.demand(version, at)
        if at >= known.ends_at or demand is None or not _is_the_same(demand, known.demand):
            return False
        load = world.index.load(version)
        return load is not None and (load.containers, load.running) == (known.size, known.running)


def _spread(seconds: float, version: str) -> float:
    """Not the same for all: what was looked at in one pass would be due in one pass for ever."""
    return seconds * (0.5 + hash(version) % 1024 / 1024)


def restless_versions(world: World, at: float) -> set[str]:
    """The versions of which a container was told to go, is replaced, or is on a node that drains or is lost."""
    nodes, seen = world.nodes, world.seen
    moving = [node for node in nodes if nodes[node].draining or at - seen.get(node, at) > NODE_LOST_S]
    found = {each.version for node in moving for each in nodes[node].containers}
    found.update(map(world.index.version_of, (*world.draining, *world.replacing, *world.parking, *world.unparking)))
    return found


def _is_settled(view: VersionView, wish: Wish) -> bool:
    demand = view.demand
    return (
        wish.count <= view.size <= view.ceiling
        and not any(each.guessed for each in view.containers)
        and {wish.rule, wish.asked_by} <= BY_CALLS_ALONE | KEEPING
        and view.deployed
        and view.arm is None
        and not view.is_shut_down
        and not view.unfunded
        and view.bounds is None
        and view.floor_most is None
        and view.speed is None
        and not view.pending
        and not view.leaving
        and demand is not None
        and _is_plain(demand)
    )


def _rests(view: VersionView, wish: Wish) -> bool:
    return (
        bool(view.parked)
        and not (view.size or view.leaving or wish.count)
        and view.demand is None
        and view.deployed
        and view.arm is None
        and not view.is_shut_down
        and not view.unfunded
        and view.bounds is None
    )


def _stays_s(view: VersionView) -> float:
    """For how long no container has been idle for its window, whatever its calls do."""
    window_s = min(view.window_s, view.zero_window_s)
    return window_s - max([0.0, *(each.idle_s for each in view.containers if not each.running)])


def _is_plain(demand: Demand) -> bool:
    """Whether calls run, and none waits or was turned away."""
    return demand.running > 0 and not (demand.waiting or demand.refused_calls or demand.late or demand.backlog)


def _is_the_same(one: Demand, other: Demand) -> bool:
    """Whether as many calls wait and run by either word, and none has come or left in between."""
    return (
        (one.queued, one.running, one.arrivals, one.backlog) == (other.queued, other.running, 0, other.backlog)
        and (one.service_ms, one.oldest_run_ms) == (other.service_ms, other.oldest_run_ms)
        and (one.refused, one.refused_calls, one.late) == (other.refused, 0, 0)
        and len(one.classes) == len(other.classes)
    )
