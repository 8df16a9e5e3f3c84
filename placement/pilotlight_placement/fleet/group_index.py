"""The index of each group: which devices are in which state.

`remove` takes a unit out before it changes and `add` puts it back after, so the index never has an empty state.
`expected_index` derives the whole index from the units alone, for the audit.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from pilotlight_placement.fleet.device_classes import DeviceGroup, RoomStates
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fragmentation.host_fragmentation import HostRoom
from pilotlight_placement.fragmentation.place_costs import State
from pilotlight_placement.hardware.node import SHARE_UNITS

IndexContents = Mapping[str, Mapping[int, list[int]] | Mapping[State, list[int]]]
"""Name of an index of a group -> state -> ranks, ascending."""


def add(unit: Unit) -> None:
    """Add a unit to its group's index, by its present state."""
    group = unit.group
    _count_free(unit, 1)
    if unit.parked:
        group.pinned.add(unit.rank)
    if group.kind.mig:
        _count_mask(unit, 1)
        _insert(group.states, unit.mask, unit.rank)
        for instance in unit.idle:
            group.idle.setdefault(instance, set()).add(unit.rank)
        for place in unit.ready:
            group.ready_cuts.setdefault(place, set()).add(unit.rank)
    elif unit.is_empty:
        _add_vacant(unit)
    elif unit.free:
        for states in _share_states(unit):
            _insert(states, (unit.free, unit.node.room), unit.rank)


def remove(unit: Unit) -> None:
    """Remove a unit from its group's index; its state must be the one with which it was added."""
    group = unit.group
    _count_free(unit, -1)
    if unit.parked:
        group.pinned.discard(unit.rank)
    if group.kind.mig:
        _count_mask(unit, -1)
        _delete(group.states, unit.mask, unit.rank)
        for instance in unit.idle:
            group.idle[instance].discard(unit.rank)
            if not group.idle[instance]:
                del group.idle[instance]
        for place in unit.ready:
            group.ready_cuts[place].discard(unit.rank)
            if not group.ready_cuts[place]:
                del group.ready_cuts[place]
    elif unit.is_empty:
        _remove_vacant(unit)
    elif unit.free:
        for states in _share_states(unit):
            _delete(states, (unit.free, unit.node.room), unit.rank)
        if not group.shared[unit.tenant, unit.agrees]:
            del group.shared[unit.tenant, unit.agrees]


def withdraw(unit: Unit) -> None:
    """Remove a unit before it changes, if it is offered."""
    unit.node.different.clear()
    if unit.is_offered:
        remove(unit)


def offer(unit: Unit) -> None:
    """Add a unit that has changed, if it is offered."""
    if unit.is_offered:
        add(unit)


def move(node: NodeOccupancy, room: HostRoom, outside: Collection[Unit] = ()) -> None:
    """Set a node's room, and move its units to the states with that room, but for those that are not in the index."""
    old, node.room = node.room, room
    for group, ranks in node.vacant.items():
        count = _counted(group, len(ranks))
        _delete(group.vacant, (count, old), node.rank)
        _insert(group.vacant, (count, room), node.rank)
    for unit in node.gpus:
        if unit.held and unit.free and unit.is_offered and not unit.group.kind.mig and unit not in outside:
            for states in _share_states(unit):
                _delete(states, (unit.free, old), unit.rank)
                _insert(states, (unit.free, room), unit.rank)


def expected_index(group: DeviceGroup, units: list[Unit]) -> IndexContents:
    """A group's index derived from its units."""
    masks: dict[int, list[int]] = {}
    expected: dict[str, RoomStates] = {"vacant": {}, "agreeing": {}}
    vacant: dict[int, int] = {}
    rooms = {unit.node.rank: unit.node.room for unit in units}
    for unit in sorted(units, key=lambda unit: unit.rank):
        if group.kind.mig:
            masks.setdefault(unit.mask, []).append(unit.rank)
        elif unit.is_empty:
            vacant[unit.node.rank] = vacant.get(unit.node.rank, 0) + 1
        elif 0 < unit.free < SHARE_UNITS:
            state = (unit.free, unit.node.room)
            expected.setdefault(f"shared {unit.tenant, unit.agrees}", {}).setdefault(state, []).append(unit.rank)
            if unit.agrees:
                expected["agreeing"].setdefault(state, []).append(unit.rank)
    for node, count in sorted(vacant.items()):
        expected["vacant"].setdefault((_counted(group, count), rooms[node]), []).append(node)
    return {"states": masks, **expected}


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


def _count_free(unit: Unit, change: int) -> None:
    if unit.gpu is not None:
        unit.group.class_index.models.change(unit.group.kind.name, change * round(SHARE_UNITS * unit.part_free))


def _counted(group: DeviceGroup, empty: int) -> int:
    """The number of empty ones in a state: how many slots of a node are free does not matter."""
    return empty if group.slot is None else 1


def _share_states(unit: Unit) -> Iterator[RoomStates]:
    yield unit.group.shared.setdefault((unit.tenant, unit.agrees), {})
    if unit.agrees:
        yield unit.group.agreeing


def _add_vacant(unit: Unit) -> None:
    group, node = unit.group, unit.node
    ranks = node.vacant.setdefault(group, [])
    before = _counted(group, len(ranks)) if ranks else 0
    insort(ranks, unit.rank)
    for _, base in unit.ready:
        insort(group.ready.setdefault(base, {}).setdefault(node.rank, []), unit.rank)
    group.count_empty(1)
    _recount(unit, before, _counted(group, len(ranks)))


def _remove_vacant(unit: Unit) -> None:
    group, node = unit.group, unit.node
    ranks = node.vacant[group]
    before = _counted(group, len(ranks))
    ranks.remove(unit.rank)
    for _, base in unit.ready:
        _forget_ready(group, base, unit)
    group.count_empty(-1)
    _recount(unit, before, _counted(group, len(ranks)) if ranks else 0)
    if not ranks:
        del node.vacant[group]


def _forget_ready(group: DeviceGroup, base: str, unit: Unit) -> None:
    nodes = group.ready[base]
    nodes[unit.node.rank].remove(unit.rank)
    if not nodes[unit.node.rank]:
        del nodes[unit.node.rank]
    if not nodes:
        del group.ready[base]


def _recount(unit: Unit, before: int, after: int) -> None:
    """Move a unit's node to the state with another number of empty devices; 0: to none."""
    states, node = unit.group.vacant, unit.node
    if ranks := node.vacant[unit.group]:
        unit.group.empties[node.rank] = len(ranks)
    else:
        del unit.group.empties[node.rank]
    if before == after:
        return
    if before:
        _delete(states, (before, node.room), node.rank)
    if after:
        _insert(states, (after, node.room), node.rank)


StateT = TypeVar("StateT")


def _insert(states: dict[StateT, list[int]], state: StateT, rank: int) -> None:
    if (ranks := states.get(state)) is None:
        states[state] = [rank]
    else:
        insort(ranks, rank)


def _delete(states: dict[StateT, list[int]], state: StateT, rank: int) -> None:
    ranks = states[state]
    place = bisect_left(ranks, rank)
    if place >= len(ranks) or ranks[place] != rank:
        raise LookupError(f"rank {rank} is not in state {state}")
    if len(ranks) == 1:
        del states[state]
    else:
        del ranks[place]
