"""Checks of a fleet: no overlap, no illegal start, and every index and count equal to what its devices make."""

from __future__ import annotations

from collections import Counter

from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.group_index import actual_index, expected_index
from pilotlight_placement.fleet.occupancy import Unit, idle_cuts, occupied
from pilotlight_placement.fleet.tenant_holdings import NOTHING_HELD, HeldResources, resources_of
from pilotlight_placement.hardware.node import SHARE_UNITS


class IntegrityError(AssertionError):
    """The fleet contradicts itself, which is a defect of placement."""


def check_integrity(fleet: Fleet) -> None:
    """Derive every index and count again and compare; the time is linear in the fleet's size.

    Raises:
        IntegrityError: naming the first difference.
    """
    for unit in fleet.units.values():
        _unit(unit)
    for place in fleet.places.values():
        _require(place.room == place.room_now(), f"{place.name}: its room is {place.room}")
    _holds(fleet)
    _groups(fleet)
    _models(fleet)
    _counts(fleet)
    _holdings(fleet)


def _unit(unit: Unit) -> None:
    if unit.gpu is not None and unit.gpu.mig and unit.gpu.device.family is not None:
        try:
            mask = unit.gpu.device.family.masks_of(unit.instances())
        except ValueError as error:
            raise IntegrityError(f"{unit.id}: {error}") from error
        _require(mask == unit.taken, f"{unit.id}: the mask is {unit.taken}, its instances make {mask}")
    _require(unit.mask == unit.taken | unit.recut, f"{unit.id}: the places that are cut anew")
    _require(occupied(unit) == (unit.taken, unit.free, unit.media), f"{unit.id}: not as its containers make it")
    _require(idle_cuts(unit) == unit.idle, f"{unit.id}: its idle instances")
    _require(0 <= unit.free <= SHARE_UNITS, f"{unit.id}: {unit.free} parts are free")
    tenants = {held.tenant for held in unit.held.values()}
    if len(tenants) > 1 and not unit.mask:
        _require(all(held.neighbours for held in unit.held.values()), f"{unit.id}: tenants share who did not agree")


def _holds(fleet: Fleet) -> None:
    there = {(unit.id, held.container) for unit in fleet.units.values() for held in unit.held.values()}
    wanted = {(name, held.container) for held in fleet.held.values() for name in held.slice.ids}
    _require({pair[1] for pair in there} == {pair[1] for pair in wanted}, "devices and holds name other containers")
    for held in fleet.held.values():
        place = fleet.places.get(held.slice.node)
        _require(place is not None, f"{held.container} is on {held.slice.node}, which is not there")
        for name in held.slice.ids:
            unit = place.by_id.get(name) if place else None
            _require(unit is not None and held.container in unit.held, f"{held.container} is not on {name}")
        _require(not held.slice.profile or len(held.slice.ids) == 1, f"{held.container} has several MIG devices")


def _models(fleet: Fleet) -> None:
    free: Counter[str] = Counter()
    for unit in fleet.units.values():
        if unit.gpu is not None and unit.is_offered:
            free[unit.group.kind.name] += round(SHARE_UNITS * unit.part_free)
    _require(fleet.models.contents() == {name: parts for name, parts in free.items() if parts}, "free parts by model")


def _holdings(fleet: Fleet) -> None:
    sums: dict[str, HeldResources] = {}
    for held in fleet.held.values():
        if not fleet.places[held.slice.node].node.draining:
            sums[held.tenant] = sums.get(held.tenant, NOTHING_HELD).plus(resources_of(held.slice))
    counted = {tenant: fleet.holdings.of(tenant) for tenant in fleet.holdings.tenants()}
    _require(counted == sums, f"tenants hold {sums}, counted are {counted}")
    total = NOTHING_HELD
    for each in sums.values():
        total = total.plus(each)
    _require(fleet.holdings.total == total, f"tenants hold {total} in all, counted are {fleet.holdings.total}")


def _groups(fleet: Fleet) -> None:
    units: dict[DeviceGroup, list[Unit]] = {group: [] for group in fleet.groups.values()}
    for unit in fleet.units.values():
        if unit.serves:
            units[unit.group].append(unit)
    for group, serving in units.items():
        _require(group.total == len(serving), f"{group.kind}: counts {group.total}, has {len(serving)}")
        _require(group.nodes == {unit.node.rank for unit in serving}, f"{group.kind}: its nodes")
        counts = dict(Counter(unit.node.rank for unit in serving))
        _require(group.serving == counts, f"{group.kind}: serving devices by node")
        inside = [unit for unit in serving if unit.is_offered]
        empties = dict(Counter(unit.node.rank for unit in inside if unit.is_empty and not group.kind.mig))
        _require(group.empties == empties, f"{group.kind}: empty devices by node")
        _require(expected_index(group, inside) == actual_index(group), f"{group.kind}: index and devices differ")
        idle = {cut: {unit.rank for unit in inside if cut in unit.idle} for unit in inside for cut in unit.idle}
        _require(group.idle == idle, f"{group.kind}: idle instances")
        _warmth(group, inside)
        if not group.kind.mig:
            _require(group.open == [sum(unit.is_empty for unit in inside)], f"{group.kind}: empty ones")
        if group.kind.mig and group.device is not None and group.device.family is not None:
            family = group.device.family
            bits = [family.fits[u.mask] & ~(family.media if u.media else 0) for u in inside]
            fits = [sum(bit >> index & 1 for bit in bits) for index in range(len(group.open))]
            _require(group.open == fits, f"{group.kind}: open for {group.open}, should be {fits}")
    offered = ((group, unit) for group, serving in units.items() for unit in serving if unit.is_offered)
    running = Counter(group.kind for group, unit in offered for _ in unit.held)
    for alike in fleet.classes.values():
        class_index = alike[0].class_index
        _require(
            class_index.open == [sum(column) for column in zip(*(group.open for group in alike), strict=True)],
            "counts of open devices",
        )
        _require(class_index.groups == len(alike), "counts of groups")
        if alike[0].kind.mig:
            masks: Counter[int] = Counter()
            for group in alike:
                masks.update({mask: len(ranks) for mask, ranks in group.states.items()})
            _require(class_index.devices == dict(masks), "counts of states")
            _require((class_index.free, class_index.slots) == _slots(alike[0], masks), "counts of slices")
            _require(class_index.running == running.get(alike[0].kind, 0), "counts of instances")
    for place in fleet.places.values():
        for group, ranks in place.vacant.items():
            empty = sorted(unit.rank for unit in place.by_group[group] if unit.is_empty and unit.is_offered)
            _require(ranks == empty, f"{place.name}: its empty devices are not as listed")


def _warmth(group: DeviceGroup, inside: list[Unit]) -> None:
    pinned = {unit.rank for unit in inside if unit.parked}
    _require(group.pinned == pinned, f"{group.kind}: units to which something returns")
    cuts = {place: {unit.rank for unit in inside if place in unit.ready} for unit in inside for place in unit.ready}
    _require(group.ready_cuts == (cuts if group.kind.mig else {}), f"{group.kind}: instances with a blank")
    ready: dict[str, dict[int, list[int]]] = {}
    for unit in sorted(inside, key=lambda unit: unit.rank):
        if unit.is_empty and not group.kind.mig:
            for _, base in unit.ready:
                ready.setdefault(base, {}).setdefault(unit.node.rank, []).append(unit.rank)
    _require(group.ready == ready, f"{group.kind}: empty ones with a blank")


def _slots(group: DeviceGroup, masks: Counter[int]) -> tuple[int, int]:
    family = group.device.family if group.device else None
    if family is None:
        return 0, 0
    return sum(family.free_slots[mask] * n for mask, n in masks.items()), family.slots * sum(masks.values())


def _counts(fleet: Fleet) -> None:
    on_node: dict[str, dict[int, int]] = {}
    for held in fleet.held.values():
        if held.function:
            ranks = on_node.setdefault(held.function, {})
            rank = fleet.places[held.slice.node].rank
            ranks[rank] = ranks.get(rank, 0) + 1
    names = {held.function for held in fleet.held.values() if held.function}
    _require(names == set(fleet.functions), "other functions are listed than hold something")
    for function in names:
        _require(dict(fleet.nodes_of(function)) == on_node[function], f"{function}: counts by node")
        _require(sum(fleet.zones(function).values()) == len(fleet.functions[function]), f"{function}: counts by zone")
    avoided: dict[str, Counter[int]] = {}
    for held in fleet.held.values():
        for function in held.avoid:
            avoided.setdefault(function, Counter())[fleet.places[held.slice.node].rank] += 1
    for function in {*avoided, *fleet.functions}:
        _require(dict(fleet.nodes_avoiding(function)) == avoided.get(function, {}), f"{function}: who avoids it")
    resident = {w: {p.rank for p in fleet.places.values() if w in p.node.resident} for w in fleet.resident}
    _require(resident == fleet.resident, "what is resident is not as the nodes say")
    _hosts(fleet)
    draining = sum(len(place.units) for place in fleet.places.values() if place.node.draining)
    _require(draining == fleet.nodes.draining, "devices of draining nodes are miscounted")
    out = sum(not unit.serves for unit in fleet.units.values()) - draining
    _require(out == fleet.nodes.withdrawn, "devices that are withdrawn are miscounted")


def _hosts(fleet: Fleet) -> None:
    memory: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    for held in fleet.held.values():
        memory[held.slice.node] += held.host.memory
        cpu[held.slice.node] += held.host.cpu_millis
    for name, place in fleet.places.items():
        _require((place.memory, place.cpu) == (memory[name], cpu[name]), f"{name}: what is promised of its host")
    told = {p.rank: (host, free) for p in fleet.places.values() if (host := p.node.host) and (free := p.free_host)}
    index = fleet.hosts
    _require(index.memory.contents() == {r: host.memory for r, (host, _) in told.items()}, "hosts by memory")
    _require(index.cpu.contents() == {r: host.cpu_millis for r, (host, _) in told.items()}, "hosts by cores")
    _require(index.free_memory.contents() == {r: f.memory for r, (_, f) in told.items()}, "hosts by free memory")
    _require(index.free_cpu.contents() == {r: f.cpu_millis for r, (_, f) in told.items()}, "hosts by free cores")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise IntegrityError(what)
