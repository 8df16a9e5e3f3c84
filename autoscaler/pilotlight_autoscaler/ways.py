"""What gives way to a version that finds no place: idle containers whose going makes one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from pilotlight_autoscaler.policy import FLOOR_PATIENCE_S, MIN_RESIDENCY_S, VersionView, idle_ones, may_give_way
from pilotlight_core.model.messages import ContainerReport
from pilotlight_placement.ask import Ask
from pilotlight_placement.fleet import Fleet
from pilotlight_placement.place import place
from pilotlight_placement.record import Placement
from pilotlight_placement.switches import would_do

TRIALS = 64
"""Sets of containers that are tried for each blocked version."""
Victim = tuple[ContainerReport, str]
"""An idle container and its version."""


def gives_way(
    fleet: Fleet,
    ask: Ask,
    version: str,
    views: Mapping[str, VersionView],
    tenants: Mapping[str, str],
    *,
    waited_for: bool,
    spared: Collection[str] = (),
) -> Sequence[Victim]:
    """The idle containers that are to go so that the ask has a place: as few as can be, the longest idle first.

    What keeps a floor stays, unless somebody waits and its tenant has more than an even share. Where no place comes of
    going alone, one that GPUs have after a change of MIG mode will do, unless idle ones can be changed as it is.
    """
    others = {name: view for name, view in views.items() if name != version}
    patience = MIN_RESIDENCY_S if waited_for else FLOOR_PATIENCE_S
    spare = [(each, name) for name, view in others.items() for each in may_give_way(view, patience)]
    if found := _enough(fleet, ask, spare, spared):
        return found
    if not waited_for:
        return ()
    # A floor is a promise out of one's own share: nobody keeps others from running at all with it.
    greedy = over_share(tenants[version], views, tenants, fleet.size)
    kept = [(each, name) for name, view in others.items() if tenants[name] in greedy for each in idle_ones(view)]
    return _enough(fleet, ask, kept, spared)


def over_share(waiting: str, views: Mapping[str, VersionView], tenants: Mapping[str, str], size: int) -> set[str]:
    """The tenants with more containers than an even share of the slices, while `waiting` has none of its own."""
    held: dict[str, int] = {waiting: 0}
    for version, view in views.items():
        held[tenants[version]] = held.get(tenants[version], 0) + view.size
    if held[waiting]:
        return set()
    return {tenant for tenant, count in held.items() if count > size / len(held)}


def _enough(fleet: Fleet, ask: Ask, victims: list[Victim], spared: Collection[str]) -> Sequence[Victim]:
    there = [victim for victim in victims if victim[0].id in fleet.held and victim[0].id not in spared]
    there.sort(key=lambda victim: (-victim[0].idle_s, victim[0].id))
    in_turn = list(islice(_groups(fleet, there), TRIALS))
    for fits in (_has_place,) if would_do(fleet, ask) else (_has_place, would_do):
        for group in in_turn:
            with fleet.trial():
                for container, _ in group:
                    fleet.release(container.id)
                if fits(fleet, ask):
                    return group
    return ()


def _has_place(fleet: Fleet, ask: Ask) -> bool:
    return isinstance(place(fleet, ask), Placement)


def _groups(fleet: Fleet, victims: Sequence[Victim]) -> Iterator[Sequence[Victim]]:
    """Each alone; then of each node the longest idle, more and more of them."""
    yield from ((victim,) for victim in victims)
    by_node: dict[str, list[Victim]] = {}
    for victim in victims:
        by_node.setdefault(fleet.held[victim[0].id].slice.node, []).append(victim)
    for on_node in by_node.values():
        yield from (on_node[:count] for count in range(2, len(on_node) + 1))
