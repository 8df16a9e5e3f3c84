"""The index of each group: which devices are in which state.

`remove` takes a unit out before it changes and `add` puts it back after, so the index never has an empty state.
`expected_index` derives the whole index from the units alone, for the audit.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from pilotlight_placement.fleet.device_classes import DeviceGroup, States
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.hardware.node import SHARE_UNITS

IndexContents = dict[str, dict[int, list[int]]]
"""Name of an index of a group -> state -> ranks, ascending."""


def add(unit: Unit) -> None:
    """Add a unit to its group's index, by its present state."""
    group = unit.group
    if group.kind.mig:
        _count_mask(unit, 1)
        _insert(group.states, unit.mask, unit.rank)
        for instance in unit.idle:
            group.idle.setdefault(instance, set()).add(unit.rank)
    elif group.slot is not None:
        if unit.is_empty:
            group.count_empty(1)
            _insert(group.states, 0, unit.rank)
    elif unit.is_empty:
        _add_vacant(unit)
    elif unit.free:
        for states in _share_states(unit):
            _insert(states, unit.free, unit.rank)


def remove(unit: Unit) -> None:
    """Remove a unit from its group's index; its state must be the one with which it was added."""
    group = unit.group
    if group.kind.mig:
        _count_mask(unit, -1)
        _delete(group.states, unit.mask, unit.rank)
        for instance in unit.idle:
            group.idle[instance].discard(unit.rank)
            if not group.idle[instance]:
                del group.idle[instance]
    elif group.slot is not None:
        if unit.is_empty:
            group.count_empty(-1)
            _delete(group.states, 0, unit.rank)
    elif unit.is_empty:
        _remove_vacant(unit)
    elif unit.free:
        for states in _share_states(unit):
            _delete(states, unit.free, unit.rank)
        if not group.shared[unit.tenant, unit.agrees]:
            del group.shared[unit.tenant, unit.agrees]


def expected_index(group: DeviceGroup, units: list[Unit]) -> IndexContents:
    """A group's index derived from its units."""
    expected: IndexContents = {"states": {}, "vacant": {}, "agreeing": {}}
    vacant: dict[int, int] = {}
    for unit in sorted(units, key=lambda unit: unit.rank):
        if group.kind.mig:
            expected["states"].setdefault(unit.mask, []).append(unit.rank)
        elif group.slot is not None:
            if unit.is_empty:
                expected["states"].setdefault(0, []).append(unit.rank)
        elif unit.is_empty:
            vacant[unit.node.rank] = vacant.get(unit.node.rank, 0) + 1
        elif 0 < unit.free < SHARE_UNITS:
            expected.setdefault(f"shared {unit.tenant, unit.agrees}", {}).setdefault(unit.free, []).append(unit.rank)
            if unit.agrees:
                expected["agreeing"].setdefault(unit.free, []).append(unit.rank)
    for node, count in sorted(vacant.items()):
        expected["vacant"].setdefault(count, []).append(node)
    return expected


def actual_index(group: DeviceGroup) -> IndexContents:
    """A group's index, in the form of `expected_index`."""
    shared = {f"shared {sharers}": states for sharers, states in group.shared.items()}
    return {"states": group.states, "vacant": group.vacant, "agreeing": group.agreeing, **shared}


def _count_mask(unit: Unit, change: int) -> None:
    group = unit.group
    assert group.device is not None and group.device.family is not None  # noqa: S101, PT018 - only MIG groups come here
    family = group.device.family
    group.class_index.count(unit.mask, len(unit.held), family, change)
    bits, index = family.fits[unit.mask] & ~(family.media if unit.media else 0), 0
    while bits:
        if bits & 1:
            group.open[index] += change
            group.class_index.open[index] += change
        bits >>= 1
        index += 1


def _share_states(unit: Unit) -> Iterator[States]:
    yield unit.group.shared.setdefault((unit.tenant, unit.agrees), {})
    if unit.agrees:
        yield unit.group.agreeing


def _add_vacant(unit: Unit) -> None:
    group, node = unit.group, unit.node
    ranks = node.vacant.setdefault(group, [])
    if ranks:
        _delete(group.vacant, len(ranks), node.rank)
    insort(ranks, unit.rank)
    group.count_empty(1)
    _insert(group.vacant, len(ranks), node.rank)


def _remove_vacant(unit: Unit) -> None:
    group, node = unit.group, unit.node
    ranks = node.vacant[group]
    _delete(group.vacant, len(ranks), node.rank)
    ranks.remove(unit.rank)
    group.count_empty(-1)
    if ranks:
        _insert(group.vacant, len(ranks), node.rank)
    else:
        del node.vacant[group]


def _insert(states: States, state: int, rank: int) -> None:
    if (ranks := states.get(state)) is None:
        states[state] = [rank]
    else:
        insort(ranks, rank)


def _delete(states: States, state: int, rank: int) -> None:
    ranks = states[state]
    place = bisect_left(ranks, rank)
    if place >= len(ranks) or ranks[place] != rank:
        raise LookupError(f"rank {rank} is not in state {state}")
    if len(ranks) == 1:
        del states[state]
    else:
        del ranks[place]
