"""The fleet's index: cells of devices that are alike, and in each, which device is in which state.

A cell holds the devices of one kind, mode and domain on nodes that take containers. Ten thousand GPUs make a few dozen
cells, and a cell has at most 256 states, so a decision looks at states, not at devices. Within a state devices stand by
rank, the fixed order of nodes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pilotlight_placement.fleet.occupancy import InstanceKey, NodeOccupancy, Unit
from pilotlight_placement.fragmentation.mask_fragmentation import MaskFragmentation
from pilotlight_placement.fragmentation.scores import ScoreKey, ScoreRow, Scores, best_start
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.geometry import Family
from pilotlight_placement.hardware.node import MAX_UNITS, SHARE_UNITS, Domain, Slot

NO_SCORES = Scores(masks=None, shares=())
CHEAP = 1e-6
"""A price below this decides nothing that hope does not; so it stays as it is while devices come and go."""
States = dict[int, list[int]]
"""state -> ranks, ascending; no empty lists."""


@dataclass(frozen=True, kw_only=True)
class DeviceClass:
    """What decides how devices can be given, and at what cost; not where they are. Slots have no device."""

    name: str
    mig: bool = False
    shareable: bool = False
    spot: bool = False
    slot: str = ""
    """Kind, memory and share of a slot; "" for a device."""
    variant: tuple[int, ...] = ()
    """Devices of one name whose driver reports other figures."""

    @property
    def order(self) -> tuple[object, ...]:
        """A fixed order, whichever node came first."""
        return (self.name, self.mig, self.shareable, self.spot, self.slot, self.variant)

    @property
    def anywhere(self) -> DeviceClass:
        """The same, however it was bought."""
        return replace(self, spot=False)


class DeviceClassIndex:
    """All cells of a sort together: what is open is counted here, and MIG places are priced by how many there are."""

    def __init__(self, kinds: int) -> None:
        self.open = [0] * kinds
        self.cells = 0
        self.devices: dict[int, int] = {}
        """MIG: mask -> devices in that state."""
        self.running = 0
        """MIG: instances that containers use."""
        self.free = 0
        """MIG: memory slices that nobody uses."""
        self.slots = 0
        """MIG: memory slices in all."""
        self._stale = True
        self._now: tuple[int, ...] = ()
        """What prices follow from: how many devices are open for each profile, instances, free part."""
        self._prices: tuple[float, ...] = ()
        self._rows: dict[int, ScoreRow] = {}
        self._best: list[dict[int, tuple[ScoreKey, int] | None]] = [{} for _ in range(kinds)]

    def rescore(self) -> None:
        """Forget what was scored by another demand."""
        self._stale, self._now, self._prices = True, (), ()

    def count(self, unit: Unit, family: Family, change: int) -> None:
        """One MIG device more or less in its state."""
        there = self.devices.get(unit.mask, 0) + change
        if there:
            self.devices[unit.mask] = there
        else:
            del self.devices[unit.mask]
        if there == max(0, change):  # the first or the last one in its state
            self._rows.clear()
        self.running += change * len(unit.held)
        self.free += change * family.free_slots[unit.mask]
        self.slots += change * family.slots
        self._stale = True

    def row(self, scores: MaskFragmentation, profile: int) -> ScoreRow:
        """The states that there are and in which the profile fits, best first."""
        if self._stale:
            self._price(scores)
        if (row := self._rows.get(profile)) is None:
            present = [(*found, mask) for mask in self.devices if (found := self.best(scores, profile, mask))]
            row = self._rows[profile] = tuple([(key, mask, start) for key, start, mask in sorted(present)])
        return row

    def best(self, scores: MaskFragmentation, profile: int, mask: int) -> tuple[ScoreKey, int] | None:
        """Key and start of the profile's best place in a state; None if it does not fit."""
        if self._stale:
            self._price(scores)
        known = self._best[profile]
        if mask not in known:
            known[mask] = best_start(scores, profile, mask, self._prices)
        return known[mask]

    def _price(self, scores: MaskFragmentation) -> None:
        """Price places by how many there are; in steps, so that one device more or less seldom changes a price."""
        now = (
            *map(round_down_octave, self.open),
            round_down_octave(self.running),
            round(16 * self.free / (self.slots or 1)),
        )
        self._stale = False
        if now == self._now:
            return
        self._now = now
        prices = scores.prices(now[:-2], now[-2], now[-1] / 16)
        prices = tuple([price if price > CHEAP else 0.0 for price in prices])
        if prices != self._prices:
            self._prices = prices
            self._best = [{} for _ in self.open]
            self._rows.clear()


def round_down_octave(count: int) -> int:
    """A count, rounded down to 8 steps an octave: exact where it is small, where alone it matters."""
    bits = max(0, count.bit_length() - 4)
    return count >> bits << bits


class DeviceGroup:
    """Devices that are alike. `device` is None for slots, whose pattern is `slot`."""

    def __init__(
        self,
        kind: DeviceClass,
        domain: Domain,
        device: Device | None,
        slot: Slot | None,
        tally: DeviceClassIndex | None = None,
    ) -> None:
        self.kind = kind
        self.open: list[int] = [0] * (len(device.cuts) if device and kind.mig else 1)
        """MIG: for each profile, how many devices have a place for one more. Otherwise how many are empty."""
        self.tally = tally or DeviceClassIndex(len(self.open))
        self.tally.cells += 1
        self.domain = domain
        self.device = device
        self.slot = slot
        self.scores = NO_SCORES
        self.total = 0
        self.nodes: set[int] = set()
        """Ranks of the nodes that have some of them."""
        self.states: States = {}
        """MIG: mask -> units. Slots: 0 -> free units."""
        self.idle: dict[InstanceKey, set[int]] = {}
        """MIG: profile's index and start -> units on which that instance exists and is idle."""
        self.vacant: States = {}
        """Whole devices: number of empty ones -> nodes (by rank of node)."""
        self.shared: dict[tuple[str, bool], States] = {}
        """Shares: tenant, and whether it agrees to others -> free 64ths -> units that this tenant alone uses."""
        self.agreeing: States = {}
        """Shares: free 64ths -> units whose users all agree to other tenants."""

    def pools(self, tenant: str, *, neighbours: bool) -> list[States]:
        """The units that a tenant may join, in states without common units."""
        pools = [self.shared.get((tenant, False))] if tenant else []
        pools.append(self.agreeing if neighbours else self.shared.get((tenant, True)) if tenant else None)
        return [pool for pool in pools if pool]

    def add(self, unit: Unit) -> None:
        """Put a unit where its state belongs."""
        if self.kind.mig:
            self._put_mask(unit, 1)
            _insert(self.states, unit.mask, unit.rank)
            for cut in unit.idle:
                self.idle.setdefault(cut, set()).add(unit.rank)
        elif self.slot is not None:
            if unit.is_empty:
                self._put_empty(1)
                _insert(self.states, 0, unit.rank)
        elif unit.is_empty:
            self._vacate(unit.node, unit.rank)
        elif unit.free:
            for states in self._share_states(unit):
                _insert(states, unit.free, unit.rank)

    def remove(self, unit: Unit) -> None:
        """Take a unit out of where its state put it."""
        if self.kind.mig:
            self._put_mask(unit, -1)
            _delete(self.states, unit.mask, unit.rank)
            for cut in unit.idle:
                self.idle[cut].discard(unit.rank)
                if not self.idle[cut]:
                    del self.idle[cut]
        elif self.slot is not None:
            if unit.is_empty:
                self._put_empty(-1)
                _delete(self.states, 0, unit.rank)
        elif unit.is_empty:
            self._occupy(unit.node, unit.rank)
        elif unit.free:
            for states in self._share_states(unit):
                _delete(states, unit.free, unit.rank)
            if not self.shared[unit.tenant, unit.agrees]:
                del self.shared[unit.tenant, unit.agrees]

    def _put_mask(self, unit: Unit, change: int) -> None:
        assert self.device is not None and self.device.family is not None  # noqa: S101, PT018 - only MIG cells come here
        family = self.device.family
        self.tally.count(unit, family, change)
        bits, index = family.fits[unit.mask] & ~(family.media if unit.media else 0), 0
        while bits:
            if bits & 1:
                self.open[index] += change
                self.tally.open[index] += change
            bits >>= 1
            index += 1

    def _put_empty(self, change: int) -> None:
        self.open[0] += change
        self.tally.open[0] += change

    def _share_states(self, unit: Unit) -> Iterator[States]:
        yield self.shared.setdefault((unit.tenant, unit.agrees), {})
        if unit.agrees:
            yield self.agreeing

    def _vacate(self, place: NodeOccupancy, rank: int) -> None:
        ranks = place.vacant.setdefault(self, [])
        if ranks:
            _delete(self.vacant, len(ranks), place.rank)
        insort(ranks, rank)
        self._put_empty(1)
        _insert(self.vacant, len(ranks), place.rank)

    def _occupy(self, place: NodeOccupancy, rank: int) -> None:
        ranks = place.vacant[self]
        _delete(self.vacant, len(ranks), place.rank)
        ranks.remove(rank)
        self._put_empty(-1)
        if ranks:
            _insert(self.vacant, len(ranks), place.rank)
        else:
            del place.vacant[self]

    def vacant_units(self, at_least: int = 1) -> int:
        """Empty whole devices on nodes that have so many of them."""
        if at_least == 1:
            return self.open[0]
        return sum(count * len(nodes) for count, nodes in self.vacant.items() if count >= at_least)


def rank_in(node_rank: int, index: int) -> int:
    """The rank of a node's unit: by node, then by its place on the node."""
    return node_rank * MAX_UNITS + index


def node_rank(rank: int) -> int:
    """The rank of the node of a unit."""
    return rank // MAX_UNITS


def contents(cell: DeviceGroup, units: list[Unit]) -> dict[str, dict[int, list[int]]]:
    """What a cell's index must hold if these are its units: to audit it with."""
    wanted: dict[str, dict[int, list[int]]] = {"states": {}, "vacant": {}, "agreeing": {}}
    vacant: dict[int, int] = {}
    for unit in sorted(units, key=lambda unit: unit.rank):
        if cell.kind.mig:
            wanted["states"].setdefault(unit.mask, []).append(unit.rank)
        elif cell.slot is not None:
            if unit.is_empty:
                wanted["states"].setdefault(0, []).append(unit.rank)
        elif unit.is_empty:
            vacant[unit.node.rank] = vacant.get(unit.node.rank, 0) + 1
        elif 0 < unit.free < SHARE_UNITS:
            wanted.setdefault(f"shared {unit.tenant, unit.agrees}", {}).setdefault(unit.free, []).append(unit.rank)
            if unit.agrees:
                wanted["agreeing"].setdefault(unit.free, []).append(unit.rank)
    for node, count in sorted(vacant.items()):
        wanted["vacant"].setdefault(count, []).append(node)
    return wanted


def indexed(cell: DeviceGroup) -> dict[str, dict[int, list[int]]]:
    """What a cell's index holds, in the form of `contents`."""
    shared = {f"shared {whose}": states for whose, states in cell.shared.items()}
    return {"states": cell.states, "vacant": cell.vacant, "agreeing": cell.agreeing, **shared}


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
