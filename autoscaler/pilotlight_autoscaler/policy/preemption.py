"""The choice of containers to drain for a version without a place, of those that may go. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy.missing_starts import in_turn
from pilotlight_autoscaler.policy.scaling_policy import FLOOR_IDLE_S, MIN_RESIDENCY_S, VersionView, may_give_way
from pilotlight_core.model.messages.node_messages import ContainerReport
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.plan.mig_switches import has_place_after_switch
from pilotlight_placement.plan.plan import Shortfall
from pilotlight_placement.search.place import has_place

ALONE = 48
"""Containers that are tried alone."""
NODES = 16
"""Nodes on which several together are tried."""
PRUNED = 8
TRIALS = 1_024
"""Sets of containers that one pass tries for all blocked versions: 0.1 ms each."""
PreemptionVictim = tuple[ContainerReport, str]


@dataclass(kw_only=True)
class TrialBudget:
    left: int = TRIALS

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


@dataclass(kw_only=True)
class IdleContainers:
    """The idle containers of all versions beyond their floors, computed once per pass."""

    views: Mapping[str, VersionView]
    idle: Mapping[str, str] | None = None
    """container -> version, of those that have no call; None: all versions are asked."""
    idle_on: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The same containers, by node."""
    worth: Callable[[str], float] = lambda _: 0.0
    """By version: what a container of it saves while it stays on its slice (`core.model.scaling.warm_worth`)."""
    _of_all: dict[float, list[PreemptionVictim]] = field(default_factory=dict)
    """By how long they have been idle at least."""

    def _with_idle(self) -> list[tuple[str, VersionView]]:
        if self.idle is None:
            return list(self.views.items())
        return [(name, self.views[name]) for name in sorted(set(self.idle.values())) if name in self.views]

    def beyond_floors(self, *, waited_for: bool) -> list[PreemptionVictim]:
        """Idle containers beyond the floors, those worth least first, of equal ones the longest idle; with `waited_for`
        (calls wait) also recently used ones.
        """
        at_least_s = MIN_RESIDENCY_S if waited_for else FLOOR_IDLE_S
        if at_least_s not in self._of_all:
            self._of_all[at_least_s] = self._worth_least(at_least_s, self._with_idle())
        return self._of_all[at_least_s]

    def on_nodes(self, fleet: Fleet, nodes: Collection[int], *, waited_for: bool) -> list[PreemptionVictim]:
        """The same, of the nodes with these ranks alone: there may be thousands on others."""
        if self.idle is None:
            idle = self.beyond_floors(waited_for=waited_for)
            return [victim for victim in idle if _rank_of(fleet, victim[0].id) in nodes]
        names = (fleet.by_rank[rank].node.name for rank in nodes)
        there = {container for name in names for container in self.idle_on.get(name, ())}
        versions = sorted({self.idle[container] for container in there})
        views = [(version, self.views[version]) for version in versions if version in self.views]
        idle = self._worth_least(MIN_RESIDENCY_S if waited_for else FLOOR_IDLE_S, views)
        return [victim for victim in idle if victim[0].id in there]

    def _worth_least(self, at_least_s: float, views: Iterable[tuple[str, VersionView]]) -> list[PreemptionVictim]:
        idle = [
            (self.worth(name), -each.idle_s, each.id, each, name)
            for name, view in views
            for each in may_give_way(view, at_least_s)
        ]
        return [(each, name) for *_, each, name in sorted(idle, key=lambda one: one[:3])]


def _rank_of(fleet: Fleet, container: str) -> int:
    """The rank of a container's node; -1: the fleet does not have it."""
    held = fleet.held.get(container)
    return fleet.places[held.slice.node].rank if held is not None else -1


def choose_victims(
    fleet: Fleet,
    ask: Ask,
    victims: Iterable[PreemptionVictim],
    *,
    spared: Collection[str] = (),
    trials: TrialBudget | None = None,
    allows: Callable[[Sequence[PreemptionVictim]], bool] = lambda _: True,
) -> Sequence[PreemptionVictim]:
    """The containers to drain so that the ask has a place: as few as possible, the first ones first.

    `allows` is asked of a set whose containers are released. A switch of MIG mode is considered only if no set makes a
    place without one.
    """
    trials = trials or TrialBudget()
    there = [victim for victim in victims if victim[0].id in fleet.held and victim[0].id not in spared]
    if not there or trials.left <= 0:
        return ()
    offers = fleet.offers(ask)
    if ask.spread is None:
        # What goes elsewhere frees nothing that would serve.
        nodes = set().union(*(group.nodes for group in offers.of_use))
        there = [victim for victim in there if fleet.places[fleet.held[victim[0].id].slice.node].rank in nodes]
    of_use = offers.by_group
    there.sort(key=lambda victim: group_of(fleet, victim[0].id) not in of_use)
    for fits in (has_place,) if has_place_after_switch(fleet, ask) else (has_place, has_place_after_switch):
        attempt = PreemptionSearch(fleet=fleet, ask=ask, fits=fits, allows=allows, trials=trials)
        if group := attempt.one(there) or attempt.several(there):
            return group
    return ()


def round_robin(shorts: Sequence[Shortfall], first: int) -> list[Shortfall]:
    """The shortfalls from number `first` on, one of each tenant in turn, so that no tenant crowds out the others."""
    ordered = list(in_turn(shorts, lambda short: short.refusal.record.ask.tenant))
    start = first % len(ordered) if ordered else 0
    return ordered[start:] + ordered[:start]


def group_of(fleet: Fleet, container: str) -> DeviceGroup:
    """The group of the devices that a container holds."""
    slice_ = fleet.held[container].slice
    return fleet.places[slice_.node].by_id[slice_.ids[0]].group


@dataclass(frozen=True, kw_only=True)
class PreemptionSearch:
    """A search for containers without which `fits` finds a place."""

    fleet: Fleet
    ask: Ask
    fits: Callable[[Fleet, Ask], bool]
    trials: TrialBudget
    allows: Callable[[Sequence[PreemptionVictim]], bool] = lambda _: True

    def one(self, victims: Sequence[PreemptionVictim]) -> Sequence[PreemptionVictim]:
        """The first container that suffices alone."""
        return next(((victim,) for victim in victims[:ALONE] if self._enough((victim,))), ())

    def several(self, victims: Sequence[PreemptionVictim]) -> Sequence[PreemptionVictim]:
        """The smallest sufficient set on one node; nodes with many containers are tried first."""
        by_node: dict[str, list[PreemptionVictim]] = {}
        for victim in victims:
            by_node.setdefault(self.fleet.held[victim[0].id].slice.node, []).append(victim)
        nodes = sorted((on_node for on_node in by_node.values() if len(on_node) > 1), key=len, reverse=True)
        found = [self._fewest(on_node) for on_node in nodes[:NODES] if self._enough(on_node)]
        return min(found, key=len, default=())

    def _fewest(self, on_node: Sequence[PreemptionVictim]) -> Sequence[PreemptionVictim]:
        """A small sufficient subset of one node's containers."""
        least, most = 1, len(on_node)
        while least < most:
            middle = (least + most) // 2
            least, most = (least, middle) if self._enough(on_node[:middle]) else (middle + 1, most)
        chosen = list(on_node[:most])
        for victim in chosen[:-1][:PRUNED]:
            if self._enough(fewer := [each for each in chosen if each is not victim]):
                chosen = fewer
        return chosen

    def _enough(self, group: Sequence[PreemptionVictim]) -> bool:
        if not self.trials.take():
            return False
        with self.fleet.trial():
            for container, _ in group:
                self.fleet.release(container.id)
            return self.allows(group) and self.fits(self.fleet, self.ask)
