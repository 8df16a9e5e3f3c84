"""How many devices of a group have room for an option, from the group's index."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import Option
from pilotlight_placement.fleet.device_classes import DeviceGroup, RoomStates
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offer
from pilotlight_placement.hardware.node import MAX_UNITS
from pilotlight_placement.search.candidate import has_room


def open_units(option: Option, groups: Sequence[DeviceGroup], ask: Ask) -> int:
    """How many devices of some groups have a place for an option; a group's first option counts for all of them."""
    if option.count > 1:
        return sum([_vacant_units(group, option.count) for group in groups])
    whole = sum([group.open[option.index] for group in groups])
    return whole + sum([_open_shares(group, option.units, ask) for group in groups]) if option.units else whole


def serving_on(group: DeviceGroup, nodes: Collection[int]) -> int:
    """How many devices of a group on some of its nodes (by rank) serve, free or not."""
    return sum([group.serving[rank] for rank in nodes])


def open_units_on(fleet: Fleet, offers: Sequence[Offer], group: DeviceGroup, nodes: Collection[int], ask: Ask) -> int:
    """How many devices of a group on some of its nodes (by rank) have a place for one of its offers."""
    if group.kind.mig:
        units = [unit for rank in nodes for unit in fleet.by_rank[rank].by_group[group] if unit.serves]
        return sum([has_room(unit, ask, offers) for unit in units])
    option = offers[0].option
    counts = [group.empties[rank] for rank in nodes if rank in group.empties]
    empty = sum([count for count in counts if count >= option.count])
    if not option.units:
        return empty
    shared = [ranks for pool in joinable_shares(group, ask) for s, ranks in pool.items() if s[0] >= option.units]
    return empty + sum([rank // MAX_UNITS in nodes for ranks in shared for rank in ranks])


def _open_shares(group: DeviceGroup, units: int, ask: Ask) -> int:
    pools = joinable_shares(group, ask)
    return sum([len(ranks) for pool in pools for state, ranks in pool.items() if state[0] >= units])


def _vacant_units(group: DeviceGroup, at_least: int) -> int:
    return sum(state[0] * len(nodes) for state, nodes in group.vacant.items() if state[0] >= at_least)


def joinable_shares(group: DeviceGroup, ask: Ask) -> list[RoomStates]:
    """The shared devices that the ask's tenant may join, by state; no unit is in two of them."""
    pools = [group.shared.get((ask.tenant, False))] if ask.tenant else []
    pools.append(group.agreeing if ask.neighbours else group.shared.get((ask.tenant, True)) if ask.tenant else None)
    return [pool for pool in pools if pool]
