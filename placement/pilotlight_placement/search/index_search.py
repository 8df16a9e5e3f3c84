"""The best candidates by the fleet's index, in the order of the policy's steps, without a pass over all devices.

Within a cost level each offer is a stream of candidates, best first: states by key (a table row), in each state devices
by rank. The merged streams equal all candidates sorted by `policy.STEPS`, which a test checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup, node_rank, rank_in
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import Offer, OfferLevel, Zone
from pilotlight_placement.fragmentation.scores import ScoreKey
from pilotlight_placement.hardware.node import MAX_UNITS, SHARE_UNITS
from pilotlight_placement.search.candidate import NO_KEY, Candidate, whole_key
from pilotlight_placement.search.node_search import PER_STATE, SearchScope
from pilotlight_placement.search.open_units import joinable_shares

NodesByRank = dict[int, NodeOccupancy]


def by_index(
    levels: Sequence[OfferLevel], ask: Ask, nodes: NodesByRank, within: SearchScope
) -> Iterator[Iterator[Candidate]]:
    """For each cost level its candidates, best first; of equal ones the first `PER_STATE` of a group."""
    for level, offers in levels:
        streams = []
        for offer in offers:
            groups = _open_groups(offer, within.zones)
            if groups:
                streams.append(_stream(level, offer, groups, ask, nodes, within.blocked))
        if streams:
            yield streams[0] if len(streams) == 1 else merge(*streams)


def _open_groups(offer: Offer, zones: frozenset[Zone] | None) -> list[DeviceGroup]:
    """The offer's groups in some zones (None: all) that may have a free place."""
    index, share = offer.option.index, offer.option.units
    return [
        group
        for group in offer.groups
        if (group.open[index] or (share and group.shared))
        and (zones is None or (group.domain.region, group.domain.zone) in zones)
    ]


def _stream(
    level: int, offer: Offer, groups: Sequence[DeviceGroup], ask: Ask, nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    option, serial = offer.option, offer.serial
    if option.profile >= 0:
        return _instances(level, offer, groups, nodes, blocked, media=ask.media)
    if option.units:
        return _shares(level, offer, groups, ask, nodes, blocked)
    if groups[0].slot is not None:
        ranks = sorted(rank for group in groups for rank in _first(group.states.get(0, ()), blocked))
        return (Candidate(level, NO_KEY, 0, rank, serial, offer) for rank in ranks)
    return _wholes(level, offer, groups, nodes, blocked)


def _instances(
    level: int,
    offer: Offer,
    groups: Sequence[DeviceGroup],
    nodes: NodesByRank,
    blocked: Collection[int],
    *,
    media: bool,
) -> Iterator[Candidate]:
    serial, profile, scores = offer.serial, offer.option.profile, groups[0].scores.masks
    places: list[Candidate] = []
    last: ScoreKey = NO_KEY
    for key, mask, start in groups[0].class_index.row(scores, profile) if scores else ():
        if key != last:
            if places:
                yield from sorted(places)
            places, last = [], key
        for group in groups:
            if mask in group.states:
                ranks: Iterable[int] = group.states[mask]
                if media:
                    ranks = [rank for rank in ranks if not _unit(nodes, rank).media]
                idle = group.idle.get((profile, start))
                if idle:
                    there = _first((rank for rank in ranks if rank in idle), blocked)
                    places += [Candidate(level, key, 0, rank, serial, offer, start) for rank in there]
                    ranks = (rank for rank in ranks if rank not in idle)
                places += [Candidate(level, key, 1, rank, serial, offer, start) for rank in _first(ranks, blocked)]
    yield from sorted(places)


def _wholes(
    level: int, offer: Offer, groups: Sequence[DeviceGroup], nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    count = offer.option.count
    for vacant in sorted({vacant for group in groups for vacant in group.vacant if vacant >= count}):
        key = whole_key(vacant, count)
        yield from sorted(
            Candidate(level, key, 0, nodes[node].vacant[group][0], offer.serial, offer)
            for group in groups
            for node in _first_nodes(group.vacant.get(vacant, ()), blocked)
        )


def _shares(
    level: int, offer: Offer, groups: Sequence[DeviceGroup], ask: Ask, nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    """Devices that the tenant shares already, those whose tenants all agree to others, and empty ones."""
    best = groups[0].scores.share_best[offer.option.units]
    found: list[Candidate] = []
    for group in groups:
        for pool in joinable_shares(group, ask):
            for free, ranks in pool.items():
                if free in best:
                    first = _first(ranks, blocked)
                    found += [Candidate(level, best[free], 0, rank, offer.serial, offer) for rank in first]
        key = best[SHARE_UNITS]
        for vacant, names in group.vacant.items():
            for node in _first_nodes(names, blocked):
                rank = nodes[node].vacant[group][0]
                found.append(Candidate(level, (key[0], key[1], vacant), 0, rank, offer.serial, offer))
    return iter(sorted(found))


def _unit(nodes: NodesByRank, rank: int) -> Unit:
    node = nodes[node_rank(rank)]
    return node.units[rank - rank_in(node.rank, 0)]


def _first(ranks: Iterable[int], blocked: Collection[int]) -> Sequence[int]:
    if not blocked:
        return list(islice(ranks, PER_STATE))
    return list(islice((rank for rank in ranks if rank // MAX_UNITS not in blocked), PER_STATE))


def _first_nodes(ranks: Iterable[int], blocked: Collection[int]) -> Sequence[int]:
    if not blocked:
        return list(islice(ranks, PER_STATE))
    return list(islice((rank for rank in ranks if rank not in blocked), PER_STATE))
