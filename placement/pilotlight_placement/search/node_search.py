"""The best places on given nodes: those of a spread step, or those that have the weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import ByCell, Zone
from pilotlight_placement.search.candidate import Candidate, candidate_on

PER_STATE = 2
"""Candidates compared per state: the winner, and the one that loses by rank alone."""
NEVER = 10**9


class SearchScope(NamedTuple):
    """The zones to search (None: all), and the excluded nodes (by rank)."""

    zones: frozenset[Zone] | None
    blocked: Collection[int]


def on_nodes(
    by_group: ByCell, ask: Ask, nodes: Iterable[NodeOccupancy], within: SearchScope
) -> Iterator[Iterator[Candidate]]:
    """The candidates on some nodes, best first, in runs of equal cost, of which there are the two lowest.

    Those for which something that is parked has to end are a run of their own.
    """
    found: list[Candidate] = []
    lowest = second = NEVER
    zones = within.zones
    for node in nodes:
        if node.node.draining or node.rank in within.blocked:
            continue
        for group, units in node.by_group.items():
            if not (offers := by_group.get(group)):
                continue
            if zones is not None and (group.domain.region, group.domain.zone) not in zones:
                continue
            if (different := node.different.get(group)) is None:
                different = node.different[group] = _different(group, units)
            for offer in offers:
                if offer.level > second:
                    break
                here = [at for unit in different if (at := candidate_on(offer, ask, unit)) is not None]
                if here:
                    found += here
                    lowest, second = _lowest_two(lowest, second, offer.level)
    for _, run in groupby(sorted([at for at in found if at.level <= second]), key=lambda at: (at.level, at.parked)):
        yield run


def _lowest_two(lowest: int, second: int, level: int) -> tuple[int, int]:
    if level < lowest:
        return level, lowest
    return lowest, level if lowest < level < second else second


def _different(group: DeviceGroup, units: list[Unit]) -> list[Unit]:
    """The first `PER_STATE` devices of each state, without those that are full or not offered."""
    states: dict[object, int] = {}
    different = []
    fits = group.device.family.fits if group.kind.mig and group.device and group.device.family else None
    for unit in units:
        if not unit.is_offered or not (fits[unit.mask] if fits else unit.free):
            continue
        state: tuple[object, ...] = (
            (unit.mask, unit.media, unit.idle) if fits else (unit.free, unit.tenant, unit.agrees)
        )
        if unit.ready or unit.parked:
            state = (*state, unit.ready, unit.parked)
        seen = states.get(state, 0)
        if seen < PER_STATE:
            states[state] = seen + 1
            different.append(unit)
    return different
