"""Usage from meter to stream: meters are checkpointed each second, written to the log, then stored in USAGE."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog

from pilotlight_core.bus import BusError, StoreRefused
from pilotlight_core.model import subjects
from pilotlight_core.model.devices import SliceName
from pilotlight_core.model.messages.node_messages import SliceReport
from pilotlight_core.model.messages.usage import LeaseState, UsageBatch, UsageEvent
from pilotlight_runtime.logs.log_shipper import LogStore
from pilotlight_runtime.metering.device_meter import DeviceMeter, MeteredDevice
from pilotlight_runtime.metering.ended_shares import EndedShares
from pilotlight_runtime.metering.meter import SliceMeter
from pilotlight_runtime.metering.several_meters import SeveralMeters
from pilotlight_runtime.metering.usage_log import UsageLog, UsageRecord

log = structlog.get_logger(__name__)

EVERY_S = 1.0
STORE_S = 10.0
LONGEST_PAUSE_S = 30.0
"""Between two attempts while the stream is full; the first pause is EVERY_S, and each is twice the one before."""
AT_ONCE = 64
CLOCK_STEP_NS = 10**8
"""The machine's clock was set if it has moved by more against the boot clock."""
RECORD_SHARES = 4_000
"""Calls in one record."""
MOST_UNWRITTEN = 200_000
"""Events, and calls in them, that wait for a disk that takes nothing; the oldest records are given up beyond."""
OPERATOR = "-"
"""The name under which the operator's usage is stored; no tenant's name begins so."""

T = TypeVar("T")
Meter = SliceMeter | SeveralMeters

boot_ns: Callable[[], int] = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
"""The node's boot clock in ns, which runs on while the machine is suspended."""


def wall_offset_ns(clock: Callable[[], int]) -> int:
    """Unix nanoseconds at the zero of `clock`."""
    return time.time_ns() - clock()


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Metering:
    def __init__(
        self,
        *,
        node: str,
        instance: str,
        region: str,
        slices: Iterable[SliceReport],
        usage_log: UsageLog,
        ended_shares: EndedShares,
        store: LogStore,
        zone: str = "",
        purchase: str = "",
        clock: Callable[[], int] = boot_ns,
    ) -> None:
        self._instance = instance
        self._region = region
        self._zone = zone
        self._purchase = purchase
        self._wall_offset_ns = wall_offset_ns(clock)
        self._log = usage_log
        self._ended_shares = ended_shares
        self._store = store
        self._clock = clock
        self._numbers = itertools.count(1)
        self._log_lock = asyncio.Lock()  # one thread at a time uses the log
        self._writing = asyncio.Lock()  # the checkpoint before is on disk when the next one is made
        self._unwritten: list[UsageRecord] = []
        """What the disk did not take."""
        self._written = asyncio.Event()
        self._written.set()  # a former agent may have left some
        self._pause_s = 0.0
        self._node = node
        self._began_ns = clock()
        self._metered = dict(usage_log.metered)
        self._devices: dict[str, DeviceMeter] = {}
        self.recut(slices)

    def slice(self, slice_id: str) -> Meter:
        """The meter of one slice, or of several whole devices; raises KeyError for an unknown one."""
        name = SliceName.parse(slice_id)
        meters = [self._devices[self._of_slice[part]].slice(part) for part in _parts_of(name)]
        return meters[0] if len(meters) == 1 else SeveralMeters(meters)

    def mark_blank(self, slice_id: str, *, is_there: bool) -> None:
        """A blank is on a slice that no container has, or is no longer; the operator pays either way.

        Raises:
            KeyError: there is no such slice.
        """
        state = LeaseState.BLANK if is_there else LeaseState.FREE
        self._devices[self._of_slice[slice_id]].slice(slice_id).transition(state, self._clock())

    def recut(self, slices: Iterable[SliceReport], prices: Mapping[str, str] | None = None) -> None:
        """Meter these slices from now on, in place of those before.

        `prices` maps devices to price ids; they are metered even if none of their slices is on offer.
        """
        grouped: dict[str, list[SliceReport]] = {device: [] for device in (*self._devices, *(prices or {}))}
        for part in slices:
            grouped.setdefault(part.device, []).append(part)
        for device, parts in grouped.items():
            wanted = {part.id: part.ppm for part in parts}
            if device not in self._devices:
                price = (prices or {}).get(device) or parts[0].price
                self._devices[device] = self._new_meter(device, price, wanted)
            elif self._devices[device].slices != wanted:
                self._devices[device].recut(wanted, self._clock())
        self._of_slice = {name: device for device, meter in self._devices.items() for name in meter.slices}

    def _new_meter(self, device: str, price: str, parts: dict[str, int]) -> DeviceMeter:
        return DeviceMeter(
            MeteredDevice(
                instance=self._instance,
                node=self._node,
                device=device,
                price=price,
                region=self._region,
                zone=self._zone,
                purchase=self._purchase,
            ),
            parts,
            at_ns=self._began_ns,
            since_ns=self._metered.get(device),
            wall_offset_ns=self._wall_offset_ns,
            on_ended=self._ended_shares.add,
        )

    def check_integrity(self) -> None:
        """Raise AssertionError if a slice's time is metered twice or not at all."""
        for name in self._of_slice:
            self._devices[self._of_slice[name]].slice(name).check_integrity()

    @property
    def unacknowledged_bytes(self) -> int:
        """Bytes of usage in the log that the stream has not taken."""
        return self._log.unacknowledged_bytes

    @property
    def unwritten(self) -> int:
        """Records that the disk has not taken."""
        return len(self._unwritten)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_each_second())
            group.create_task(self._store_what_is_written())

    async def write(self, *, everything: bool = True) -> None:
        """Write what is metered so far to disk, one write at a time; `everything`: also where nothing has changed."""
        async with self._writing:
            await self._write(everything=everything)

    async def _write(self, *, everything: bool) -> None:
        at, is_last_on_disk = self._clock(), not self._unwritten
        if is_last_on_disk:
            self._ended_shares.begin_window()
        devices = [each for each in self._devices.values() if everything or not each.may_wait(at)]
        self._set_wall()
        events = [event for each in devices for event in each.checkpoint(at, is_last_on_disk=is_last_on_disk)]
        self._unwritten += [
            UsageRecord(id=f"{self._instance}.{next(self._numbers)}", tenant=tenant, events=part)
            for tenant, part in by_tenant(events)
        ]
        try:
            if self._unwritten:
                await self._blocking(self._log.append, self._unwritten)
        except OSError as error:
            # It goes on serving, and writes all of them as soon as the disk takes them.
            log.error("usage could not be written", records=len(self._unwritten), error=str(error))
            self._give_up_oldest()
        else:
            self._unwritten = []
        self._written.set()

    def _set_wall(self) -> None:
        """Date what follows by the machine's clock, if that was set: small steps would only tear intervals apart."""
        now = wall_offset_ns(self._clock)
        if abs(now - self._wall_offset_ns) > CLOCK_STEP_NS:
            self._wall_offset_ns = now
            for device in self._devices.values():
                device.set_wall(now)

    def _give_up_oldest(self) -> None:
        """Keep what is bounded; the operator pays for the rest."""
        size, given_up = sum(map(_size_of, self._unwritten)), 0
        while size > MOST_UNWRITTEN:
            size -= _size_of(self._unwritten.pop(0))
            given_up += 1
        if given_up:
            log.error("usage that callers were told of is lost: the disk has taken nothing for long", records=given_up)

    async def ship(self) -> bool:
        """Store the records that the stream does not have yet; False if the bus did not take all."""
        while pending := await self._blocking(self._log.pending, AT_ONCE):
            for item in pending:
                record = item.record
                subject = subjects.usage(self._region, self._node, record.tenant or OPERATOR)
                try:
                    await self._store.store(subject, UsageBatch(events=record.events), id=record.id, timeout=STORE_S)
                except BusError as error:
                    self._pause_s = pause_after(error, self._pause_s)
                    log.warning("usage is not stored yet", record=record.id, error=str(error), pause_s=self._pause_s)
                    return False
                self._pause_s = 0.0
                try:
                    await self._blocking(self._log.acknowledge, item.end)
                except OSError as error:  # it is sent again after a restart, and counts once
                    log.warning("it is not noted that usage is stored", record=record.id, error=str(error))
        return True

    async def _write_each_second(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.write(everything=False)

    async def _store_what_is_written(self) -> None:
        while True:
            await self._written.wait()
            self._written.clear()
            await self.ship()
            await asyncio.sleep(self._pause_s)

    async def _blocking(self, call: Callable[..., T], *args: Any) -> T:
        async with self._log_lock:
            # A cancelled thread works on: the lock is held until it has ended.
            work = asyncio.ensure_future(asyncio.to_thread(call, *args))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError as error:
                cancelled = error
            await asyncio.wait([work])
            try:
                raise cancelled
            finally:
                del cancelled


def pause_after(error: BusError, pause_s: float) -> float:
    """Seconds until usage is sent again after `error`, where `pause_s` was the pause before.

    A stream that is full refuses at once, and has room only when the duties have made some: all agents ask it ever more
    rarely. Where the bus is away, each attempt has waited for it already.
    """
    if not isinstance(error, StoreRefused):
        return 0.0
    return min(2 * pause_s, LONGEST_PAUSE_S) or EVERY_S


def by_tenant(events: Iterable[UsageEvent]) -> list[tuple[str, tuple[UsageEvent, ...]]]:
    """Group events by the tenant that pays, in parts of at most RECORD_SHARES calls."""
    grouped: dict[str, list[UsageEvent]] = defaultdict(list)
    parts: list[tuple[str, tuple[UsageEvent, ...]]] = []
    for event in events:
        group = grouped[event.tenant]
        if group and sum(len(e.shares) for e in group) + len(event.shares) > RECORD_SHARES:
            parts.append((event.tenant, tuple(group)))
            group.clear()
        group.append(event)
    return [*parts, *((tenant, tuple(group)) for tenant, group in grouped.items())]


def _size_of(record: UsageRecord) -> int:
    return sum(1 + len(event.shares) for event in record.events)


def _parts_of(name: SliceName) -> tuple[str, ...]:
    return name.devices if len(name.devices) > 1 else (str(name),)
