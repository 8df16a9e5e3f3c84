"""How many devices of a group have room for an option, from the group's index."""

from __future__ import annotations

from collections.abc import Sequence

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import Option
from pilotlight_placement.fleet.device_classes import DeviceGroup, States


def open_units(option: Option, groups: Sequence[DeviceGroup], ask: Ask) -> int:
    """How many devices of some groups have a place for an option; a group's first option counts for all of them."""
    if option.count > 1:
        return sum([_vacant_units(group, option.count) for group in groups])
    whole = sum([group.open[option.index] for group in groups])
    return whole + sum([_open_shares(group, option.units, ask) for group in groups]) if option.units else whole


def _open_shares(group: DeviceGroup, units: int, ask: Ask) -> int:
    pools = joinable_shares(group, ask)
    return sum([len(ranks) for pool in pools for free, ranks in pool.items() if free >= units])


def _vacant_units(group: DeviceGroup, at_least: int) -> int:
    return sum(count * len(nodes) for count, nodes in group.vacant.items() if count >= at_least)


def joinable_shares(group: DeviceGroup, ask: Ask) -> list[States]:
    """The shared devices that the ask's tenant may join (free 64ths -> units); no unit is in two of them."""
    pools = [group.shared.get((ask.tenant, False))] if ask.tenant else []
    pools.append(group.agreeing if ask.neighbours else group.shared.get((ask.tenant, True)) if ask.tenant else None)
    return [pool for pool in pools if pool]
