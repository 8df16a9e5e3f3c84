"""Finding the best place by the index: the policy's steps in their order, without looking at each device.

Within one cost, each way to serve the ask is a stream of places, best first: states of devices by key (a table row),
and in each state the devices by rank. The streams are merged; the first place wins, and those behind it are the best
losers, step by step. Equivalent to scoring every device of the fleet by `policy.STEPS`, which the tests do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup, node_rank, rank_in
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import ByCell, Offer, OfferLevel, Zone
from pilotlight_placement.fragmentation.scores import ScoreKey
from pilotlight_placement.hardware.node import SHARE_UNITS

PER_STATE = 2
"""Places of one state that are looked at: the winner, and who lost to it by rank alone."""
NEVER = 10**9
"""Above any cost."""
NO_KEY: ScoreKey = (0.0, 0.0, 0)


class Candidate(NamedTuple):
    """A place that would do; smaller is better, and no two are equal."""

    level: int
    key: ScoreKey
    cut: int
    """1 if its MIG instance must be made first."""
    rank: int
    serial: int
    offer: Offer
    start: int = 0


class SearchScope(NamedTuple):
    """Where to look: in all zones or some, and not on certain nodes (by rank)."""

    zones: frozenset[Zone] | None
    blocked: Collection[int]

    def has(self, cell: DeviceGroup) -> bool:
        return self.zones is None or (cell.domain.region, cell.domain.zone) in self.zones

    def of(self, cells: tuple[DeviceGroup, ...]) -> Sequence[DeviceGroup]:
        return cells if self.zones is None else [cell for cell in cells if self.has(cell)]


NodesByRank = dict[int, NodeOccupancy]


def by_index(
    levels: Sequence[OfferLevel], ask: Ask, nodes: NodesByRank, within: SearchScope
) -> Iterator[Iterator[Candidate]]:
    """For each cost level its places, best first; of places alike in all but their node, the first two of a cell."""
    for level, offers in levels:
        streams = []
        for offer in offers:
            cells = may_be_open(offer, within.of(offer.cells))
            if cells:
                streams.append(_stream(level, offer, cells, ask, nodes, within.blocked))
        if streams:
            yield streams[0] if len(streams) == 1 else merge(*streams)


def may_be_open(offer: Offer, cells: Sequence[DeviceGroup]) -> list[DeviceGroup]:
    """The cells at which a look is worth it: in the others nothing is free."""
    index = offer.option.index
    if offer.option.units:
        return [cell for cell in cells if cell.open[index] or cell.shared]
    return [cell for cell in cells if cell.open[index]]


def on_nodes(by_cell: ByCell, ask: Ask, places: Iterable[NodeOccupancy], within: SearchScope) -> list[Candidate]:
    """The places on certain nodes, best first: those of the lowest cost, and of the next one that there is."""
    found: list[Candidate] = []
    lowest = second = NEVER
    for place in places:
        if place.node.draining or place.rank in within.blocked:
            continue
        for cell, units in place.by_cell.items():
            if not (offers := by_cell.get(cell)) or not within.has(cell):
                continue
            if (different := place.different.get(cell)) is None:
                different = place.different[cell] = _different(cell, units)
            for offer in offers:
                if offer.level > second:
                    break
                here = [at for unit in different if (at := at_unit(offer, ask, unit)) is not None]
                if here:
                    found += here
                    lowest, second = _lowest_two(lowest, second, offer.level)
    return sorted([at for at in found if at.level <= second])


def _lowest_two(lowest: int, second: int, level: int) -> tuple[int, int]:
    """The two lowest different costs, with one more."""
    if level < lowest:
        return level, lowest
    return lowest, level if lowest < level < second else second


def _different(cell: DeviceGroup, units: list[Unit]) -> list[Unit]:
    """Of devices in the same state the first two; those that are kept back or full are left out."""
    states: dict[object, int] = {}
    different = []
    fits = cell.device.family.fits if cell.kind.mig and cell.device and cell.device.family else None
    for unit in units:
        if not unit.is_offered or not (fits[unit.mask] if fits else unit.free):
            continue
        state = (unit.mask, unit.media, unit.idle) if fits else (unit.free, unit.tenant, unit.agrees)
        seen = states.get(state, 0)
        if seen < PER_STATE:
            states[state] = seen + 1
            different.append(unit)
    return different


def at_unit(offer: Offer, ask: Ask, unit: Unit) -> Candidate | None:
    """The place that an offer has on one device now, if it has one."""
    option, cell = offer.option, unit.cell
    if option.profile >= 0:
        masks = cell.scores.masks
        best = cell.tally.best(masks, option.profile, unit.mask) if masks else None
        if best is None or (ask.media and unit.media):
            return None
        cut = (option.profile, best[1]) not in unit.idle
        return Candidate(offer.level, best[0], int(cut), unit.rank, offer.serial, offer, best[1])
    if option.units:
        return _share_at(offer, ask, unit)
    if not unit.is_empty:
        return None
    if cell.slot is not None:
        return Candidate(offer.level, NO_KEY, 0, unit.rank, offer.serial, offer)
    vacant = unit.node.vacant.get(cell, [])
    if len(vacant) < option.count or vacant[0] != unit.rank:
        return None
    return Candidate(offer.level, whole_key(len(vacant), option.count), 0, unit.rank, offer.serial, offer)


def joins(unit: Unit, ask: Ask, offers: Iterable[Offer]) -> bool:
    """Whether a device has a place for one of the offers, alone or as one of several that its node has empty."""
    return any(at_unit(offer, ask, unit) is not None or _is_spare(offer, unit) for offer in offers)


def _is_spare(offer: Offer, unit: Unit) -> bool:
    vacant = unit.node.vacant.get(unit.cell, ())
    return offer.option.profile < 0 and unit.is_empty and len(vacant) >= offer.option.count


def whole_key(vacant: int, count: int) -> ScoreKey:
    """Of whole devices: nodes with the fewest empty ones first, so that large groups stay together."""
    return (0.0, (vacant - count) / 64, 0)


def _share_at(offer: Offer, ask: Ask, unit: Unit) -> Candidate | None:
    free = SHARE_UNITS if unit.is_empty else unit.free
    key = unit.cell.scores.share_best[offer.option.units].get(free)
    if key is None or not unit.takes(ask.tenant, neighbours=ask.neighbours):
        return None
    if unit.is_empty:
        vacant = unit.node.vacant.get(unit.cell, [])
        if not vacant or vacant[0] != unit.rank:
            return None
        key = (key[0], key[1], len(vacant))
    return Candidate(offer.level, key, 0, unit.rank, offer.serial, offer)


def _stream(
    level: int, offer: Offer, cells: Sequence[DeviceGroup], ask: Ask, nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    """One offer's places in some cells, best first."""
    option, serial = offer.option, offer.serial
    if option.profile >= 0:
        return _instances(level, offer, cells, nodes, blocked, media=ask.media)
    if option.units:
        return _shares(level, offer, cells, ask, nodes, blocked)
    if cells[0].slot is not None:
        ranks = sorted(rank for cell in cells for rank in _first(cell.states.get(0, ()), blocked))
        return (Candidate(level, NO_KEY, 0, rank, serial, offer) for rank in ranks)
    return _wholes(level, offer, cells, nodes, blocked)


def _instances(
    level: int, offer: Offer, cells: Sequence[DeviceGroup], nodes: NodesByRank, blocked: Collection[int], *, media: bool
) -> Iterator[Candidate]:
    serial, profile, scores = offer.serial, offer.option.profile, cells[0].scores.masks
    places: list[Candidate] = []
    last: ScoreKey = NO_KEY
    for key, mask, start in cells[0].tally.row(scores, profile) if scores else ():
        if key != last:
            if places:
                yield from sorted(places)
            places, last = [], key
        for cell in cells:
            if mask in cell.states:
                ranks: Iterable[int] = cell.states[mask]
                if media:
                    ranks = [rank for rank in ranks if not _unit(nodes, rank).media]
                idle = cell.idle.get((profile, start))
                if idle:
                    there = _first((rank for rank in ranks if rank in idle), blocked)
                    places += [Candidate(level, key, 0, rank, serial, offer, start) for rank in there]
                    ranks = (rank for rank in ranks if rank not in idle)
                places += [Candidate(level, key, 1, rank, serial, offer, start) for rank in _first(ranks, blocked)]
    yield from sorted(places)


def _wholes(
    level: int, offer: Offer, cells: Sequence[DeviceGroup], nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    count = offer.option.count
    for vacant in sorted({vacant for cell in cells for vacant in cell.vacant if vacant >= count}):
        key = whole_key(vacant, count)
        yield from sorted(
            Candidate(level, key, 0, nodes[node].vacant[cell][0], offer.serial, offer)
            for cell in cells
            for node in _first_nodes(cell.vacant.get(vacant, ()), blocked)
        )


def _shares(
    level: int, offer: Offer, cells: Sequence[DeviceGroup], ask: Ask, nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    """Devices that the tenant shares already, those whose users agree to it, and empty ones."""
    best = cells[0].scores.share_best[offer.option.units]
    found: list[Candidate] = []
    for cell in cells:
        for pool in cell.pools(ask.tenant, neighbours=ask.neighbours):
            for free, ranks in pool.items():
                if free in best:
                    first = _first(ranks, blocked)
                    found += [Candidate(level, best[free], 0, rank, offer.serial, offer) for rank in first]
        key = best[SHARE_UNITS]
        for vacant, names in cell.vacant.items():
            for node in _first_nodes(names, blocked):
                rank = nodes[node].vacant[cell][0]
                found.append(Candidate(level, (key[0], key[1], vacant), 0, rank, offer.serial, offer))
    return iter(sorted(found))


def _unit(nodes: NodesByRank, rank: int) -> Unit:
    place = nodes[node_rank(rank)]
    return place.units[rank - rank_in(place.rank, 0)]


def _first(ranks: Iterable[int], blocked: Collection[int]) -> Sequence[int]:
    """The first few units that are not on a blocked node."""
    if not blocked:
        return list(islice(ranks, PER_STATE))
    return list(islice((rank for rank in ranks if node_rank(rank) not in blocked), PER_STATE))


def _first_nodes(ranks: Iterable[int], blocked: Collection[int]) -> Sequence[int]:
    if not blocked:
        return list(islice(ranks, PER_STATE))
    return list(islice((rank for rank in ranks if rank not in blocked), PER_STATE))
