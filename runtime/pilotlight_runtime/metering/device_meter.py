"""The meters of a device's slices, which make up the whole device at every instant. Pure, as `meter`."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec

from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_core.model.units import NS_PER_S, WHOLE_DEVICE
from pilotlight_runtime.metering.meter import MeterMisuse, SliceMeter
from pilotlight_runtime.metering.metered_slice import EndedShare, MeteredSlice

UNCHANGED_NS = 60 * NS_PER_S
"""How long an interval may be in which nothing changes on a device: 10,000 of them are 167 intervals a second."""

UNUSED = (LeaseState.FREE, LeaseState.BLANK)


class MeteredDevice(msgspec.Struct, frozen=True, kw_only=True):
    instance: str
    node: str
    device: str
    price: str
    region: str = ""
    zone: str = ""
    purchase: str = ""


class DeviceMeter:
    """The meters of one device's slices; the rest of it is metered as the operator's slice `{device}.rest`.

    A device may be cut meanwhile (`recut`): the meters of removed parts end, those of new parts begin at the same
    instant, and the sum stays the whole device.
    """

    def __init__(
        self,
        device: MeteredDevice,
        slices: dict[str, int],
        *,
        at_ns: int,
        since_ns: int | None = None,
        wall_offset_ns: int = 0,
        on_ended: Callable[[EndedShare], None] | None = None,
    ) -> None:
        """Meter `slices` (id -> ppm) from `since_ns`, where an earlier incarnation of the agent stopped, or `at_ns`.

        It is one instant for the whole device: an older record of a part that was cut away and is back would be wrong.

        Raises:
            MeterMisuse: if the slices are more than the device.
        """
        self._device = device
        self._wall_offset_ns = wall_offset_ns
        self._on_ended = on_ended
        self._numbers = itertools.count(1)
        self._now = at_ns
        self._told_ns: int | None = None
        """The instant of the last checkpoint."""
        self._closed: list[UsageEvent] = []
        self._past = 0  # ppm-ns of meters that have ended
        self._meters: dict[str, SliceMeter] = {}
        self._first = at_ns if since_ns is None else min(at_ns, since_ns)
        for name, ppm in self._whole(slices).items():
            self._meters[name] = self._meter(name, ppm, self._first)

    def slice(self, name: str) -> SliceMeter:
        return self._meters[name]

    @property
    def slices(self) -> dict[str, int]:
        """The present parts without the rest: id -> ppm."""
        rest = f"{self._device.device}.rest"
        return {name: meter.lease.ppm for name, meter in self._meters.items() if name != rest}

    def recut(self, slices: dict[str, int], at_ns: int) -> None:
        """Meter these parts from `at_ns` on.

        A blank on a removed part gives way.

        Raises:
            MeterMisuse: if they are more than the device, or a removed part is in use.
        """
        parts = self._whole(slices)
        goes = [meter for name, meter in self._meters.items() if parts.get(name) != meter.lease.ppm]
        if taken := [meter.lease.slice for meter in goes if meter.state not in UNUSED]:
            raise MeterMisuse(f"{', '.join(taken)} cannot go: somebody has it")
        # Nothing may end before the newest instant that any of its meters has seen.
        self._now = max(self._now, at_ns, *(meter.now for meter in self._meters.values()))
        for meter in goes:
            self._closed += meter.checkpoint(self._now)
            self._past += meter.metered_ns * meter.lease.ppm
            del self._meters[meter.lease.slice]
        for name, ppm in parts.items():
            if name not in self._meters:
                self._meters[name] = self._meter(name, ppm, self._now)

    def checkpoint(self, at_ns: int, *, is_last_on_disk: bool = True) -> list[UsageEvent]:
        """The events of all slices, each up to the same instant.

        `is_last_on_disk`: what the last call returned is.
        """
        # One instant for all of them: what the next incarnation goes on from.
        self._now = max(self._now, at_ns, *(meter.now for meter in self._meters.values()))
        self._told_ns = self._now
        events, self._closed = self._closed, []
        for meter in self._meters.values():
            events += meter.checkpoint(self._now, is_last_on_disk=is_last_on_disk)
        return events

    def may_wait(self, at_ns: int) -> bool:
        """Whether a checkpoint would only say that nothing has changed on the device, which is told once a minute.

        If the agent dies before, the operator pays for it, as for all that a killed agent had not written.
        """
        if self._told_ns is None or at_ns - self._told_ns >= UNCHANGED_NS or self._closed:
            return False
        return all(meter.is_unchanged for meter in self._meters.values())

    def set_wall(self, wall_offset_ns: int) -> None:
        """Date events from now on by a clock that was set: unix nanoseconds at the boot clock's zero."""
        self._wall_offset_ns = wall_offset_ns
        for meter in self._meters.values():
            meter.wall_offset_ns = wall_offset_ns

    def check_integrity(self) -> None:
        """Raise AssertionError unless, after a checkpoint, the slices and the rest make up the device."""
        for meter in self._meters.values():
            meter.check_integrity()
        whole = (self._now - self._first) * WHOLE_DEVICE
        metered = self._past + sum(meter.metered_ns * meter.lease.ppm for meter in self._meters.values())
        if metered != whole:
            raise AssertionError(f"{self._device.device}: {metered} of {whole} ppm-ns are metered")

    def _whole(self, slices: dict[str, int]) -> dict[str, int]:
        rest = WHOLE_DEVICE - sum(slices.values())
        if rest < 0 or min(slices.values(), default=1) < 1:
            raise MeterMisuse(f"{self._device.device}: slices of {slices} do not fit {WHOLE_DEVICE} ppm")
        return slices | ({f"{self._device.device}.rest": rest} if rest else {})

    def _meter(self, name: str, ppm: int, at_ns: int) -> SliceMeter:
        of = self._device
        lease = MeteredSlice(
            instance=of.instance, node=of.node, device=of.device, price=of.price, slice=name, ppm=ppm,
            region=of.region, zone=of.zone, purchase=of.purchase,
        )  # fmt: skip
        return SliceMeter(
            lease, at_ns=at_ns, wall_offset_ns=self._wall_offset_ns, numbers=self._numbers, on_ended=self._on_ended
        )
