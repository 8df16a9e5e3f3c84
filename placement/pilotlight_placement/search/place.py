"""Deciding where one container goes: `place(fleet, ask) -> Placement | NoFit`, with the record of why.

The policy's first three steps (preference, spread, resident) narrow where to look; `search.py` does the rest within.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import Offers, PreferenceOffers
from pilotlight_placement.hardware.node import Slice
from pilotlight_placement.search.decision_record import DecisionRecord, NoFit, Placement, Rival, Value
from pilotlight_placement.search.policy import STEP_NAMES
from pilotlight_placement.search.refusal import counts, no_fit
from pilotlight_placement.search.search import Candidate, SearchScope, by_index, on_nodes

ANYWHERE = SearchScope(None, frozenset())
LAST_OF_RUN = frozenset({"resident", "cost", "fragmentation"})
"""A place that loses at one of these ends a run: those behind it lose there too, or earlier, by more."""


class PreferenceTier(NamedTuple):
    """Places that are alike in preference and spread. `only` are the only nodes, by rank; None is any."""

    choice: PreferenceOffers
    spread: int
    within: SearchScope
    only: tuple[int, ...] | None = None


Spot = tuple[int, Candidate]
"""A place of a tier: 0 or 1 for whether the weights must be fetched, and the place."""
CandidateRun = tuple[int, Iterator[Candidate]]
"""The places of a tier that are alike in that and in cost, best first."""


class Winner(NamedTuple):
    """A place, with its value in the order of the policy's steps."""

    value: Value
    found: Candidate


def place(fleet: Fleet, ask: Ask) -> Placement | NoFit:
    """The best place by the policy, or why there is none."""
    offers = fleet.offers(ask)
    blocked = blocked_nodes(fleet, ask)
    tiers = _tiers(fleet, ask, offers, blocked)
    for tier in tiers:
        spot, lost = _best(_runs(fleet, ask, tier), last=int(bool(ask.weights)))
        if spot is not None:
            winner = Winner(_value(tier, *spot), spot[1])
            rivals = {step: Winner(_value(tier, *each), each[1]) for step, each in lost.items()}
            record = _record(fleet, ask, winner, rivals | _later(fleet, ask, tier, tiers))
            return Placement(slice=slice_at(fleet, winner.found), record=record)
    return no_fit(fleet, ask, _record(fleet, ask, None, {}))


def blocked_nodes(fleet: Fleet, ask: Ask) -> frozenset[int]:
    """The nodes that are out for this ask, by rank: too little host memory, or a function that is to be avoided."""
    small = {rank for _, rank in fleet.hosts[: bisect_left(fleet.hosts, (ask.memory, 0))]} if ask.memory else set()
    avoided = {rank for function in ask.avoid for rank in fleet.nodes_of(function)}
    return frozenset(small | avoided)


def _tiers(fleet: Fleet, ask: Ask, offers: Offers, blocked: frozenset[int]) -> Iterator[PreferenceTier]:
    for choice in offers.choices:
        anywhere = PreferenceTier(choice, 0, SearchScope(None, blocked))
        if ask.spread is None:
            yield anywhere
        elif ask.spread.over is Over.ZONE:
            yield from _by_zone(fleet, ask, anywhere)
        else:
            yield from _by_node(fleet, ask, anywhere)


def _by_zone(fleet: Fleet, ask: Ask, tier: PreferenceTier) -> Iterator[PreferenceTier]:
    zones = tier.choice.zones
    counts = fleet.zones(ask.function)
    most = ask.spread.most if ask.spread else None
    for count in sorted({counts.get(zone, 0) for zone in zones}):
        if most is None or count < most:
            alike = frozenset(zone for zone in zones if counts.get(zone, 0) == count)
            yield PreferenceTier(tier.choice, count, SearchScope(alike, tier.within.blocked))


def _by_node(fleet: Fleet, ask: Ask, tier: PreferenceTier) -> Iterator[PreferenceTier]:
    counts = fleet.nodes_of(ask.function)
    most = ask.spread.most if ask.spread else None
    yield PreferenceTier(tier.choice, 0, SearchScope(None, tier.within.blocked | counts.keys()))
    for count in sorted(set(counts.values())):
        if most is None or count < most:
            only = tuple(sorted(rank for rank, there in counts.items() if there == count))
            yield PreferenceTier(tier.choice, count, tier.within, only)


def _runs(fleet: Fleet, ask: Ask, tier: PreferenceTier) -> Iterator[CandidateRun]:
    """The tier's places as runs of one cost, best first: those on nodes with the weights, then the others."""
    warm = fleet.resident.get(ask.weights, set()) if ask.weights else set()
    cold = 1 if ask.weights else 0
    if tier.only is not None:
        yield from _on(fleet, ask, tier, [rank for rank in tier.only if rank in warm], resident=0)
        yield from _on(fleet, ask, tier, [rank for rank in tier.only if rank not in warm], resident=cold)
        return
    within = tier.within
    if warm:
        yield from _on(fleet, ask, tier, sorted(warm), resident=0)
        within = SearchScope(within.zones, warm.union(within.blocked))
    for run in by_index(tier.choice.levels, ask, fleet.by_rank, within):
        yield cold, run


def _on(fleet: Fleet, ask: Ask, tier: PreferenceTier, ranks: list[int], *, resident: int) -> Iterator[CandidateRun]:
    places: Iterator[NodeOccupancy] = (fleet.by_rank[rank] for rank in ranks)
    found = on_nodes(tier.choice.by_cell, ask, places, tier.within)
    for _, run in groupby(found, key=lambda at: at.level):
        yield resident, run


def _best(runs: Iterator[CandidateRun], *, last: int) -> tuple[Spot | None, dict[str, Spot]]:
    """The first place, and of those behind it the first that loses at each step.

    `last` is what all places are in the step `resident` behind those that lose at it: none of them loses there again.
    """
    winner: Spot | None = None
    rivals: dict[str, Spot] = {}
    for resident, run in runs:
        for found in run:
            if winner is None:
                winner = (resident, found)
                continue
            step = "resident" if resident != winner[0] else losing_step(winner[1], found)
            rivals.setdefault(step, (resident, found))
            if step in LAST_OF_RUN:
                break
        if winner is not None and ("resident" in rivals or ("cost" in rivals and winner[0] == last)):
            break
    return winner, rivals


def _later(fleet: Fleet, ask: Ask, won: PreferenceTier, tiers: Iterator[PreferenceTier]) -> dict[str, Winner]:
    """The first place of the next tier, and of the next preference: who lost at the first two steps."""
    lost: dict[str, Winner] = {}
    for tier in tiers:
        step = "preference" if tier.choice.number != won.choice.number else "spread"
        if step in lost:
            continue
        first = next(((resident, found) for resident, run in _runs(fleet, ask, tier) for found in run), None)
        if first is not None:
            lost[step] = Winner(_value(tier, *first), first[1])
        if "preference" in lost:
            break
    return lost


def losing_step(winner: Candidate, loser: Candidate) -> str:
    """The first step of the policy in which two places of one run differ, or in cost if they are of two runs."""
    if winner.level != loser.level:
        return "cost"
    mine, theirs = winner.key, loser.key
    for index, step in enumerate(("fragmentation", "fit", "start")):
        if mine[index] != theirs[index]:
            return step
    return "order" if winner.cut == loser.cut else "cut"


def _value(tier: PreferenceTier, resident: int, found: Candidate) -> Value:
    """A place in the terms of the policy's steps."""
    gradient, left, start = found.key
    return Value(tier.choice.number, tier.spread, resident, found.level, gradient, left, start, found.cut, found.rank)


def _record(fleet: Fleet, ask: Ask, winner: Winner | None, rivals: dict[str, Winner]) -> DecisionRecord:
    refused, considered = counts(fleet, ask)
    lost = [
        Rival(step=step, slice=slice_at(fleet, rivals[step].found), value=rivals[step].value)
        for step in STEP_NAMES
        if step in rivals
    ]
    return DecisionRecord(
        ask=ask,
        revision=fleet.standing,
        value=winner.value if winner else None,
        rivals=tuple(lost),
        refused=refused,
        considered=considered,
        trail=fleet.trail,
        mix=fleet.mix,
    )


def best_on(fleet: Fleet, ask: Ask, place: NodeOccupancy) -> tuple[Value, Slice] | None:
    """The best place on one node in the terms of the policy's steps; None if it has none. Filters are not asked."""
    domain, spread = place.node.domain, 0
    if ask.spread is not None and ask.spread.over is Over.NODE:
        spread = fleet.nodes_of(ask.function).get(place.rank, 0)
    elif ask.spread is not None:
        spread = fleet.zones(ask.function).get((domain.region, domain.zone), 0)
    for choice in fleet.offers(ask).choices:
        tier = PreferenceTier(choice=choice, spread=spread, within=ANYWHERE, only=(place.rank,))
        for resident, run in _runs(fleet, ask, tier):
            for found in run:
                return _value(tier, resident, found), slice_at(fleet, found)
    return None


def slice_at(fleet: Fleet, found: Candidate) -> Slice:
    """The slice that a place is."""
    unit, option = fleet.units[found.rank], found.offer.option
    cell, profile = unit.cell, ""
    ids: tuple[str, ...] = (unit.id,)
    if option.profile >= 0 and cell.device is not None:
        profile = cell.device.cuts[option.profile].profile.key
    elif option.count > 1:
        ids = tuple(each.id for each in linked_devices(fleet, unit.node, cell, option.count))
    return Slice(
        node=unit.node.name,
        kind=option.kind,
        type=cell.kind.name,
        ids=ids,
        memory=option.memory,
        ppm=cell.slot.ppm if cell.slot else option.ppm,
        profile=profile,
        start=found.start,
        units=option.units,
        slot=cell.slot is not None,
    )


def linked_devices(fleet: Fleet, place: NodeOccupancy, cell: DeviceGroup, count: int) -> list[Unit]:
    """So many empty devices of a node: of one link if one has enough, of the smallest such, in their order."""
    units = [fleet.units[rank] for rank in place.vacant[cell]]
    links: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.gpu is not None and unit.gpu.link:
            links.setdefault(unit.gpu.link, []).append(unit)
    enough = [group for group in links.values() if len(group) >= count > 1]
    return min(enough, key=lambda group: (len(group), group[0].rank), default=units)[:count]
