"""How many devices of a group have room for an option, from the group's index."""

from __future__ import annotations

from collections.abc import Sequence

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import Option
from pilotlight_placement.fleet.device_classes import DeviceGroup, States


def open_units(option: Option, cells: Sequence[DeviceGroup], ask: Ask) -> int:
    """How many devices of some groups have a place for an option; of a group's first offer, for any of its offers."""
    if option.count > 1:
        return sum([_vacant_units(cell, option.count) for cell in cells])
    whole = sum([cell.open[option.index] for cell in cells])
    return whole + sum([_open_shares(cell, option.units, ask) for cell in cells]) if option.units else whole


def _open_shares(cell: DeviceGroup, units: int, ask: Ask) -> int:
    pools = joinable_shares(cell, ask)
    return sum([len(ranks) for pool in pools for free, ranks in pool.items() if free >= units])


def _vacant_units(cell: DeviceGroup, at_least: int) -> int:
    """Empty whole devices on nodes with at least `at_least` of them."""
    return sum(count * len(nodes) for count, nodes in cell.vacant.items() if count >= at_least)


def joinable_shares(cell: DeviceGroup, ask: Ask) -> list[States]:
    """The shared devices that the ask's tenant may join (free 64ths -> units); no unit is in two of them."""
    pools = [cell.shared.get((ask.tenant, False))] if ask.tenant else []
    pools.append(cell.agreeing if ask.neighbours else cell.shared.get((ask.tenant, True)) if ask.tenant else None)
    return [pool for pool in pools if pool]
