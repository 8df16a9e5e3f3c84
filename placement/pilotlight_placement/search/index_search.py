"""The best candidates by the fleet's index, in the order of the policy's steps, without a pass over all devices.

Within a cost level each offer is a stream of candidates, best first: states by key (a table row), in each state devices
by rank. The merged streams equal all candidates sorted by `policy.STEPS`, which a test checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup, InstanceKey, node_rank, rank_in
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import Offer, OfferLevel, Zone
from pilotlight_placement.fragmentation.scores import ScoreKey
from pilotlight_placement.hardware.node import MAX_UNITS
from pilotlight_placement.search.candidate import Candidate, candidate_on, empty_costs, shared_costs
from pilotlight_placement.search.node_search import PER_STATE, SearchScope
from pilotlight_placement.search.open_units import joinable_shares

NodesByRank = Mapping[int, NodeOccupancy]


def by_index(
    levels: Sequence[OfferLevel], ask: Ask, nodes: NodesByRank, within: SearchScope
) -> Iterator[Iterator[Candidate]]:
    """For each cost level its candidates, best first; of equal ones the first `PER_STATE` of a group.

    Those for which something that is parked has to end are a run of their own, after the others of their level.
    """
    for level, offers in levels:
        streams: list[Iterator[Candidate]] = []
        pinned: list[Candidate] = []
        for offer in offers:
            groups = _open_groups(offer, within.zones)
            if groups:
                streams.append(_stream(level, offer, groups, ask, nodes, within.blocked))
                pinned += _pinned(offer, groups, ask, nodes, within.blocked)
        if pinned:
            pinned.sort()
            streams.append(iter([at for at in pinned if not at.parked]))
        if streams:
            yield streams[0] if len(streams) == 1 else merge(*streams)
        ending = [at for at in pinned if at.parked]
        if ending:
            yield iter(ending)


def _pinned(
    offer: Offer, groups: Sequence[DeviceGroup], ask: Ask, nodes: NodesByRank, blocked: Collection[int]
) -> list[Candidate]:
    """The candidates on what the streams leave out: MIG devices to which something returns, and nodes of others."""
    units: list[Unit] = []
    for group in groups:
        if not group.pinned:
            continue
        if offer.option.profile >= 0:
            units += [_unit(nodes, rank) for rank in group.pinned if rank // MAX_UNITS not in blocked]
        else:
            ranks = _pinned_nodes(group).difference(blocked)
            units += [unit for rank in ranks for unit in nodes[rank].by_group[group] if unit.is_offered]
    return [found for unit in units if (found := candidate_on(offer, ask, unit)) is not None]


def _pinned_nodes(group: DeviceGroup) -> set[int]:
    return {rank // MAX_UNITS for rank in group.pinned}


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
        return _instances(level, offer, groups, ask, nodes, blocked)
    return _by_room(level, offer, groups, ask, nodes, blocked)


def _instances(
    level: int, offer: Offer, groups: Sequence[DeviceGroup], ask: Ask, nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    """MIG instances, but for those of devices to which something returns that is parked."""
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
                if pinned := group.pinned:
                    ranks = [rank for rank in ranks if rank not in pinned]
                if ask.media:
                    ranks = [rank for rank in ranks if not _unit(nodes, rank).media]
                places += _alike(level, key, ranks, group, (profile, start), ask.base, blocked, offer, serial)
    yield from sorted(places)


def _alike(
    level: int,
    key: ScoreKey,
    ranks: Iterable[int],
    group: DeviceGroup,
    cut: InstanceKey,
    base: str,
    blocked: Collection[int],
    offer: Offer,
    serial: int,
) -> list[Candidate]:
    """An instance on devices in the same state: first where a blank is ready on it, then where it is idle."""
    start, places = cut[1], []
    idle = group.idle.get(cut)
    if idle:
        ready = group.ready_cuts.get((cut, base))
        warm = _first((rank for rank in ranks if rank in ready and rank in idle), blocked) if ready else ()
        places += [Candidate(level, 0, key, 0, 0, rank, serial, offer, start) for rank in warm]
        there = idle - ready if ready else idle
        cold = _first((rank for rank in ranks if rank in there), blocked)
        places += [Candidate(level, 0, key, 0, 1, rank, serial, offer, start) for rank in cold]
        ranks = (rank for rank in ranks if rank not in idle)
    places += [Candidate(level, 0, key, 1, 1, rank, serial, offer, start) for rank in _first(ranks, blocked)]
    return places


def _by_room(
    level: int, offer: Offer, groups: Sequence[DeviceGroup], ask: Ask, nodes: NodesByRank, blocked: Collection[int]
) -> Iterator[Candidate]:
    """Slots, whole devices, or shares: on devices that may be joined, and on empty ones."""
    serial, blanks = offer.serial, offer.option.count == 1 and not offer.option.units
    empty, begun = _by_key(offer, groups, ask)
    out = _with_pinned(groups, blocked)
    for key in sorted(empty.keys() | begun.keys()):
        warm, cold = list[int](), list[int]()
        for group, ranks in empty.get(key, ()):
            ready = group.ready.get(ask.base) if blanks and group.ready else None
            there: Iterable[int] = ranks
            if ready:
                warm += [ready[n][0] for n in _first_nodes((n for n in ranks if n in ready), out)]
                there = [n for n in ranks if n not in ready]
            cold += [nodes[n].vacant[group][0] for n in _first_nodes(there, out)]
        cold += [rank for ranks in begun.get(key, ()) for rank in _first(ranks, out)]
        for rank in sorted(warm):
            yield Candidate(level, 0, key, 0, 0, rank, serial, offer)
        for rank in sorted(cold):
            yield Candidate(level, 0, key, 0, 1, rank, serial, offer)


def _by_key(
    offer: Offer, groups: Sequence[DeviceGroup], ask: Ask
) -> tuple[dict[ScoreKey, list[tuple[DeviceGroup, list[int]]]], dict[ScoreKey, list[list[int]]]]:
    """By key, the nodes with enough empty devices or slots, and the devices of which a part is free."""
    count, units = offer.option.count, offer.option.units
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
    return empty, begun


def _with_pinned(groups: Sequence[DeviceGroup], blocked: Collection[int]) -> Collection[int]:
    """The blocked nodes, and those of which some device is pinned."""
    pinned = [group for group in groups if group.pinned]
    return frozenset(blocked).union(*map(_pinned_nodes, pinned)) if pinned else blocked


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
