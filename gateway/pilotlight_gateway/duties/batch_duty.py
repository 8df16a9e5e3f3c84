"""The duty that runs batches.

A tenant's two oldest batches run at a time; tenants take turns (`batch_turns`). A process that has lost its lease
unnoticed does no harm: its jobs exist already, and its writes meet newer revisions.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import structlog

from pilotlight_core.bus import Bus, KvEntry, Lease, Mirror
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.records.batches import BatchRecord
from pilotlight_core.model.subjects import BATCH_BUCKET
from pilotlight_gateway.batches.batch_manifest import drop_manifest
from pilotlight_gateway.batches.bus_batches import read_batch
from pilotlight_gateway.duties.batch_driver import BatchDependencies, BatchDriver
from pilotlight_gateway.duties.batch_turns import DRIVEN_AT_MOST, BatchTurns
from pilotlight_gateway.leased import while_leased

PAUSE = 1.0
LONG_PAUSE = 10.0
"""After an unexpected error, which may recur."""
FORGET_EVERY = 600.0

log = structlog.get_logger(__name__)


def expired_batches(records: Iterable[BatchRecord], at: float) -> list[BatchRecord]:
    """The batches whose retention has ended at the unix second `at`."""
    return [record for record in records if record.state.over and record.ended_at + record.keep_s < at]


@dataclass(frozen=True, kw_only=True)
class BatchDutyStatistics:
    """Counts of unfinished batches."""

    driven: int
    waiting: int
    items_left: int
    """As far as progress is stored."""


class BatchDuty:
    """Runs batches while it holds the lease."""

    def __init__(self, bus: Bus, ground: BatchDependencies, *, holder: str) -> None:
        self._bus = bus
        self._ground = ground
        self._holder = holder
        self._drivers: _Drivers | None = None

    def statistics(self) -> BatchDutyStatistics | None:
        """None while another process has the duty."""
        return self._drivers.statistics() if self._drivers is not None else None

    async def run(self) -> None:
        """Run until cancelled."""
        await while_leased(self._bus, self._bus.lease("duty.batches", self._holder), self._drive)

    async def _drive(self, _lease: Lease) -> None:
        try:
            async with self._bus.mirror(BATCH_BUCKET) as mirror:
                self._drivers = _Drivers(self._ground, mirror)
                await self._drivers.run()
        finally:
            self._drivers = None


class _Drivers:
    """Runs drivers for the batches whose turn it is."""

    def __init__(self, ground: BatchDependencies, mirror: Mirror) -> None:
        self._ground = ground
        self._mirror = mirror
        self._records = {key: record for key, entry in mirror.items() if (record := read_batch(key, entry)) is not None}
        self._turns = BatchTurns()
        self._driving: dict[str, BatchDriver] = {}
        self._taken: set[str] = set()
        """Keys of batches with a driver or a task that starts or pauses one."""
        self._changed = asyncio.Event()

    def statistics(self) -> BatchDutyStatistics:
        left = [record for record in self._records.values() if not record.state.over]
        return BatchDutyStatistics(
            driven=len(self._driving),
            waiting=max(0, len(left) - len(self._driving)),
            items_left=sum(record.total - record.counts.ended for record in left),
        )

    async def run(self) -> None:
        self._mirror.on_change.append(self._note)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forget())
                while True:
                    self._changed.clear()
                    look_at = self._take_turns(group)
                    left = None if look_at is None else max(0.0, look_at - time.monotonic())
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(left):
                            await self._changed.wait()
        finally:
            self._mirror.on_change.remove(self._note)

    def _take_turns(self, group: asyncio.TaskGroup) -> float | None:
        """Begin and end turns; returns the monotonic second of the next change."""
        chosen, look_at = self._turns.choose(self._records.values(), time.monotonic())
        keys = {record.key for record in chosen}
        for key, driver in self._driving.items():
            if key not in keys:
                driver.leave()
        for record in chosen:
            if record.key not in self._taken and len(self._taken) < DRIVEN_AT_MOST:
                self._taken.add(record.key)
                self._turns.begin(record, time.monotonic())
                group.create_task(self._drive(record))
        return look_at

    def _note(self, key: str, entry: KvEntry | None) -> None:
        record = read_batch(key, entry) if entry is not None else None
        before = self._records.pop(key, None)
        if record is not None:
            self._records[key] = record
            if (driver := self._driving.get(key)) is not None:
                driver.note(record)
        if record is None or before is None or record.state is not before.state:  # else only the progress has changed
            self._changed.set()

    async def _forget(self) -> None:
        while True:
            for record in expired_batches(self._records.values(), self._ground.wall()):
                try:
                    await drop_manifest(self._ground.blobs, record.tenant, record.chunks)
                except (PilotlightError, msgspec.DecodeError) as error:
                    log.warning("inputs of a batch are removed later", batch=record.id, error=str(error))
            await asyncio.sleep(FORGET_EVERY)

    async def _drive(self, record: BatchRecord) -> None:
        pause = PAUSE
        try:
            if await self._drive_what_stands(record):
                pause = 0.0
        except* PilotlightError as errors:
            log.warning("a batch is begun anew", batch=record.id, error=str(errors.exceptions[0]))
        except* Exception:
            log.exception("a batch is begun anew", batch=record.id)
            pause = LONG_PAUSE
        await asyncio.sleep(pause)
        self._turns.end(record, time.monotonic())
        self._taken.discard(record.key)
        self._changed.set()

    async def _drive_what_stands(self, record: BatchRecord) -> bool:
        """Run a batch to its end or that of its turn; False if it had ended before."""
        found = await self._ground.batches.read(record.tenant, record.id)
        if found is None or found[0].state.over:
            return False
        driver = self._driving[record.key] = BatchDriver(self._ground, *found)
        try:
            await driver.run()
        finally:
            del self._driving[record.key]
        return True
