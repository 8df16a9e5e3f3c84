"""The best candidates by the fleet's index, in the order of the policy's steps, without a pass over all devices.

Within a cost level each offer is a stream of candidates, best first: states by key (a table row), in each state devices
by rank. The merged streams equal all candidates sorted by `policy.STEPS`, which a test checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup, node_rank, rank_in
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import Offer, OfferLevel, Zone
from pilotlight_placement.fragmentation.scores import ScoreKey
from pilotlight_placement.hardware.node import MAX_UNITS
from pilotlight_placement.search.candidate import Candidate, empty_costs, shared_costs
from pilotlight_placement.search.node_search import PER_STATE, SearchScope
from pilotlight_placement.search.open_units import joinable_shares

NodesByRank = Mapping[int, NodeOccupancy]


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
    if offer.option.profile >= 0:
        return _instances(level, offer, groups, nodes, blocked, media=ask.media)
    return _by_room(level, offer, groups, ask, nodes, blocked)


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
    last: ScoreKey | None = None
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


def _by_room(
    level: int, offer: Offer, groups: Sequence[DeviceGroup], ask: Ask, nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    """Slots, whole devices, or shares: on devices that may be joined, and on empty ones."""
    count, units, serial = offer.option.count, offer.option.units, offer.serial
    costs = empty_costs(offer, ask)
    empty: dict[ScoreKey, list[tuple[DeviceGroup, list[int]]]] = {}
    begun: dict[ScoreKey, list[list[int]]] = {}
    joined = shared_costs(offer, ask) if units else None
    for group in groups:
        for state, ranks in group.vacant.items():
            if state[0] >= count:
                key = costs[state]
                if (alike := empty.get(key)) is None:
                    alike = empty[key] = []
                alike.append((group, ranks))
        if joined is not None:
            for pool in joinable_shares(group, ask):
                for state, ranks in pool.items():
                    if state[0] >= units:
                        begun.setdefault(joined[state], []).append(ranks)
    for key in sorted(empty.keys() | begun.keys()):
        first = [nodes[n].vacant[group][0] for group, ranks in empty.get(key, ()) for n in _first_nodes(ranks, blocked)]
        first += [rank for ranks in begun.get(key, ()) for rank in _first(ranks, blocked)]
        for rank in sorted(first):
            yield Candidate(level, key, 0, rank, serial, offer)


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
