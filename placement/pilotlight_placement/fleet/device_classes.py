"""Equivalence classes of devices, and the states of the devices in each group of a class.

A `DeviceClass` is a kind of device in a mode, a `DeviceGroup` its devices in one domain on nodes that accept
containers. Ten thousand GPUs make a few dozen groups of at most 256 states, so a decision compares states instead of
devices. Within a state devices are ordered by rank. `group_index` maintains the groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_placement.fleet.model_rooms import ModelRooms
from pilotlight_placement.fragmentation.host_fragmentation import HostNeeds
from pilotlight_placement.fragmentation.mask_fragmentation import MaskFragmentation
from pilotlight_placement.fragmentation.place_costs import OpenedCosts, ShareCosts, SlotCosts, State, WholeCosts
from pilotlight_placement.fragmentation.scores import ScoreKey, ScoreRow, Scores, best_start
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.geometry import Family
from pilotlight_placement.hardware.node import MAX_UNITS, Domain, Slot

NO_SCORES = Scores(masks=None, loads=(), host=HostNeeds(()), groups={})
NEGLIGIBLE = 1e-6
"""A smaller scarcity price counts as 0, so that prices of plentiful profiles do not change with every container."""
InstanceKey = tuple[int, int]
"""A MIG instance on a device: its profile's index, and its start."""
States = dict[int, list[int]]
"""state -> ranks, ascending; no empty lists."""
RoomStates = dict[State, list[int]]
"""The same for states that are of a device and of its node."""
MAX_TABLES = 512
"""Tables of costs by need; all are dropped when there are more."""
NeedKeyT = TypeVar("NeedKeyT")
CostTableT = TypeVar("CostTableT")


@dataclass(frozen=True, kw_only=True)
class DeviceClass:
    """The properties that decide how devices can be allocated and at what cost; also those of a slot."""

    name: str
    mig: bool = False
    shareable: bool = False
    spot: bool = False
    slot: str = ""
    """Kind, memory (MiB) and ppm of a slot; "" for a device."""
    variant: tuple[int, ...] = ()
    """Memory of the device and of its profiles, in MiB: drivers report different figures for one name."""

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key, independent of the order of arrival."""
        return (self.name, self.mig, self.shareable, self.spot, self.slot, self.variant)

    @property
    def anywhere(self) -> DeviceClass:
        """The class without its purchase, which has the same options."""
        return replace(self, spot=False) if self.spot else self


class DeviceClassIndex:
    """Counts over all groups of a class, and the scores of MIG places, whose prices follow from these counts."""

    def __init__(self, kinds: int, name: str = "", models: ModelRooms | None = None) -> None:
        self.name = name
        self.models = models or ModelRooms()
        self.open = [0] * kinds
        self.groups = 0
        self.devices: dict[int, int] = {}
        """MIG: mask -> devices in that state."""
        self.running = 0
        """MIG: instances in use."""
        self.free = 0
        """MIG: memory slices, in all groups."""
        self.slots = 0
        """MIG: memory slices, in all groups."""
        self._stale = True
        self._now: tuple[int, ...] = ()
        """The input of the prices: devices open for each profile, instances, free part."""
        self._prices: tuple[float, ...] = ()
        self._rows: dict[int, ScoreRow] = {}
        self._best: list[dict[int, tuple[ScoreKey, int] | None]] = [{} for _ in range(kinds)]
        self._shares: dict[tuple[float, int, HostShare], ShareCosts] = {}
        """Tables of costs by premium, size and need of the host."""
        self._opened: dict[tuple[float, int, HostShare], OpenedCosts] = {}
        self._wholes: dict[tuple[float, int, HostShare], WholeCosts] = {}
        self._slots: dict[HostShare, SlotCosts] = {}

    def reset_scores(self) -> None:
        """Discard all scores, because the demand behind them has changed."""
        self._stale, self._now, self._prices = True, (), ()
        for tables in (self._shares, self._opened, self._wholes, self._slots):
            tables.clear()

    def share_costs(self, scores: Scores, units: int, need: HostShare) -> ShareCosts:
        """The costs of a share on a device that others share already."""
        premium = self.models.premium(self.name)
        if (known := self._shares.get((premium, units, need))) is None:
            known = bounded(self._shares)[premium, units, need] = ShareCosts(scores, premium, units, need)
        return known

    def opened_costs(self, scores: Scores, units: int, need: HostShare) -> OpenedCosts:
        """The costs of a share on an empty device."""
        premium = self.models.premium(self.name)
        if (known := self._opened.get((premium, units, need))) is None:
            known = bounded(self._opened)[premium, units, need] = OpenedCosts(scores, premium, units, need)
        return known

    def whole_costs(self, scores: Scores, count: int, need: HostShare) -> WholeCosts:
        """The costs of whole devices."""
        premium = self.models.premium(self.name)
        if (known := self._wholes.get((premium, count, need))) is None:
            known = bounded(self._wholes)[premium, count, need] = WholeCosts(scores, premium, count, need)
        return known

    def slot_costs(self, kinds: Mapping[str, Scores], need: HostShare) -> SlotCosts:
        """The costs of a slot; `kinds` has the scores by kind of device."""
        if (known := self._slots.get(need)) is None:
            known = bounded(self._slots)[need] = SlotCosts(kinds, need)
        return known

    def count(self, mask: int, running: int, family: Family, change: int) -> None:
        """Add (`change` 1) or subtract (-1) one MIG device with `running` containers."""
        devices = self.devices.get(mask, 0) + change
        if devices:
            self.devices[mask] = devices
        else:
            del self.devices[mask]
        if devices == max(0, change):  # it was the first or the last one in its state
            self._rows.clear()
        self.running += change * running
        self.free += change * family.free_slots[mask]
        self.slots += change * family.slots
        self._stale = True

    def row(self, scores: MaskFragmentation, profile: int) -> ScoreRow:
        """The present states with a place for the profile, best first."""
        if self._stale:
            self._update_prices(scores)
        if (row := self._rows.get(profile)) is None:
            present = [(*found, mask) for mask in self.devices if (found := self.best(scores, profile, mask))]
            row = self._rows[profile] = tuple([(key, mask, start) for key, start, mask in sorted(present)])
        return row

    def best(self, scores: MaskFragmentation, profile: int, mask: int) -> tuple[ScoreKey, int] | None:
        """Key and start of the profile's best place in a state; None if it does not fit."""
        if self._stale:
            self._update_prices(scores)
        known = self._best[profile]
        if mask not in known:
            known[mask] = best_start(scores, profile, mask, self._prices)
        return known[mask]

    def _update_prices(self, scores: MaskFragmentation) -> None:
        """Recompute prices from rounded counts, so that one device more or less seldom changes a price."""
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
        prices = tuple([price if price > NEGLIGIBLE else 0.0 for price in prices])
        if prices != self._prices:
            self._prices = prices
            self._best = [{} for _ in self.open]
            self._rows.clear()


def bounded(tables: dict[NeedKeyT, CostTableT]) -> dict[NeedKeyT, CostTableT]:
    """The tables, emptied if there are too many to add one."""
    if len(tables) >= MAX_TABLES:
        tables.clear()
    return tables


def round_down_octave(count: int) -> int:
    """A count rounded down to 8 steps per octave; exact below 16."""
    bits = max(0, count.bit_length() - 4)
    return count >> bits << bits


class DeviceGroup:
    """The devices of a class in one domain. `device` is None for slots, which are like `slot`."""

    def __init__(
        self,
        kind: DeviceClass,
        domain: Domain,
        device: Device | None,
        slot: Slot | None,
        class_index: DeviceClassIndex | None = None,
        scores_by_kind: dict[str, Scores] | None = None,
    ) -> None:
        self.kind = kind
        self.open: list[int] = [0] * (len(device.cuts) if device and kind.mig else 1)
        """MIG: for each profile, the devices with a place for one more. Otherwise one count: empty devices."""
        self.class_index = class_index or DeviceClassIndex(len(self.open))
        self.scores_by_kind = scores_by_kind if scores_by_kind is not None else {}
        """Of all kinds in the fleet: what a slot costs follows from the devices of its node."""
        self.class_index.groups += 1
        self.domain = domain
        self.device = device
        self.slot = slot
        self.scores = NO_SCORES
        self.total = 0
        self.nodes: set[int] = set()
        """Ranks of nodes."""
        self.serving: dict[int, int] = {}
        """By rank of node: its devices (or slots) that serve, free or not; their sum is `total`."""
        self.empties: dict[int, int] = {}
        """By rank of node: its empty devices, or free slots, in the index."""
        self.states: States = {}
        """MIG: mask -> units."""
        self.idle: dict[InstanceKey, set[int]] = {}
        """MIG: an instance -> units on which it is idle."""
        self.vacant: RoomStates = {}
        """Whole devices: number of empty ones on a node, its room -> ranks of nodes. Of free slots the number is 1."""
        self.shared: dict[tuple[str, bool], RoomStates] = {}
        """Shares: (tenant, whether it agrees to others) -> free parts, the node's room -> units of it alone."""
        self.agreeing: RoomStates = {}
        """Shares: free parts, the node's room -> units whose containers all agree to other tenants."""

        self.ready_cuts: dict[tuple[InstanceKey, str], set[int]] = {}
        """MIG: an instance, a base environment -> units with a blank of it there."""
        self.ready: dict[str, dict[int, list[int]]] = {}
        """Empty devices and free slots: base environment -> rank of node -> its units with a blank of it, ascending."""
        self.pinned: set[int] = set()
        """Units to which a parked container returns."""

    def count_empty(self, change: int) -> None:
        self.open[0] += change
        self.class_index.open[0] += change

    @property
    def part(self) -> Device | Slot:
        part = self.device or self.slot
        assert part is not None  # noqa: S101 - it is made for one of them
        return part


def rank_in(node_rank: int, index: int) -> int:
    return node_rank * MAX_UNITS + index


def node_rank(rank: int) -> int:
    return rank // MAX_UNITS
