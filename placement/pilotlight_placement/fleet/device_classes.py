"""Equivalence classes of devices, and the states of the devices in each group of a class.

A `DeviceClass` is a kind of device in a mode, a `DeviceGroup` its devices in one domain on nodes that accept
containers. Ten thousand GPUs make a few dozen groups of at most 256 states, so a decision compares states instead of
devices. Within a state devices are ordered by rank. `group_index` maintains the groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pilotlight_placement.fragmentation.mask_fragmentation import MaskFragmentation
from pilotlight_placement.fragmentation.scores import ScoreKey, ScoreRow, Scores, best_start
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.geometry import Family
from pilotlight_placement.hardware.node import MAX_UNITS, Domain, Slot

NO_SCORES = Scores(masks=None, shares=())
NEGLIGIBLE = 1e-6
"""A smaller scarcity price counts as 0, so that prices of plentiful profiles do not change with every container."""
InstanceKey = tuple[int, int]
"""A MIG instance on a device: its profile's index, and its start."""
States = dict[int, list[int]]
"""state -> ranks, ascending; no empty lists."""


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
        return replace(self, spot=False)


class DeviceClassIndex:
    """Counts over all groups of a class, and the scores of MIG places, whose prices follow from these counts."""

    def __init__(self, kinds: int) -> None:
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

    def reset_scores(self) -> None:
        """Discard all scores, because the demand behind them has changed."""
        self._stale, self._now, self._prices = True, (), ()

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
    ) -> None:
        self.kind = kind
        self.open: list[int] = [0] * (len(device.cuts) if device and kind.mig else 1)
        """MIG: for each profile, the devices with a place for one more. Otherwise one count: empty devices."""
        self.class_index = class_index or DeviceClassIndex(len(self.open))
        self.class_index.groups += 1
        self.domain = domain
        self.device = device
        self.slot = slot
        self.scores = NO_SCORES
        self.total = 0
        self.nodes: set[int] = set()
        """Ranks of nodes."""
        self.states: States = {}
        """MIG: mask -> units. Slots: 0 -> free units."""
        self.idle: dict[InstanceKey, set[int]] = {}
        """MIG: an instance -> units on which it is idle."""
        self.vacant: States = {}
        """Whole devices: number of empty ones on a node -> ranks of nodes."""
        self.shared: dict[tuple[str, bool], States] = {}
        """Shares: (tenant, whether it agrees to others) -> free 64ths -> units that this tenant alone uses."""
        self.agreeing: States = {}
        """Shares: free 64ths -> units whose containers all agree to other tenants."""

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
