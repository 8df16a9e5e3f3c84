"""The duty that folds usage into the ledger, which ignores repeated events: the lease only saves work."""

from __future__ import annotations

import asyncio
import contextlib
import time

import structlog
from sqlalchemy.exc import SQLAlchemyError

from pilotlight_core.bus import Bus, BusError, DecodedMessage, Lease
from pilotlight_core.model.messages.usage import UsageBatch, UsageEvent
from pilotlight_core.model.subjects import USAGE_STREAM
from pilotlight_gateway.duties.leased import while_leased
from pilotlight_gateway.ledger.ledger_store import Ledger

FOLD_EVERY = 0.5
"""Seconds of messages per transaction."""
EVENTS_AT_A_TIME = 5_000
MESSAGES_AHEAD = 256
PRUNE_EVERY = 3_600.0
KEPT_SECONDS = 100 * 86_400.0
"""Retention of single intervals and receipts."""

log = structlog.get_logger(__name__)


class LedgerFolder:
    """Folds usage while it holds the lease."""

    def __init__(self, bus: Bus, ledger: Ledger, *, holder: str) -> None:
        self._bus = bus
        self._ledger = ledger
        self._holder = holder
        self._pruned = float("-inf")

    async def run(self) -> None:
        """Run until cancelled."""
        lease = self._bus.lease("duty.fold", self._holder)
        await while_leased(self._bus, lease, self._fold_all, retried=(SQLAlchemyError, BusError))

    async def _fold_all(self, lease: Lease) -> None:
        queue: asyncio.Queue[DecodedMessage] = asyncio.Queue(MESSAGES_AHEAD)
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read(queue, await self._first()))
            while True:
                seq, events = await _gather(queue)
                if not lease.valid(time.monotonic()):
                    break
                await self._fold(seq, events)
            reading.cancel()

    async def _first(self) -> int:
        """The next sequence number; 1 if the stream is shorter than what was folded, and so a new one."""
        folded = await asyncio.to_thread(self._ledger.last_seq, USAGE_STREAM)
        return folded + 1 if folded <= await self._bus.jetstream.last_sequence(USAGE_STREAM) else 1

    async def _read(self, queue: asyncio.Queue[DecodedMessage], start: int) -> None:
        async for stored in self._bus.read_stream(USAGE_STREAM, "usage.>", start=start, follow=True):
            await queue.put(stored)

    async def _fold(self, seq: int, events: list[UsageEvent]) -> None:
        folded = await asyncio.to_thread(self._ledger.fold, USAGE_STREAM, seq, events)
        if folded.misfits or folded.unpriced:
            log.warning("usage needs a look", misfits=folded.misfits, unpriced=folded.unpriced, seq=seq)
        await self._prune()

    async def _prune(self) -> None:
        at = time.monotonic()
        if at - self._pruned > PRUNE_EVERY:
            self._pruned = at
            await asyncio.to_thread(self._ledger.prune, time.time() - KEPT_SECONDS)


async def _gather(queue: asyncio.Queue[DecodedMessage]) -> tuple[int, list[UsageEvent]]:
    """The messages within FOLD_EVERY of the next one: their last sequence number and their events."""
    stored = await queue.get()
    events = _events_of(stored)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(FOLD_EVERY):
            while len(events) < EVENTS_AT_A_TIME:
                stored = await queue.get()
                events += _events_of(stored)
    return stored.seq, events


def _events_of(stored: DecodedMessage) -> list[UsageEvent]:
    return list(stored.message.events) if isinstance(stored.message, UsageBatch) else []
