"""The duty that folds usage into the ledger, which ignores repeated events: the lease only saves work.

What has no place in the ledger goes into quarantine, and the fold goes on. A message that the database refuses all the
same is found by folding each message of the failed part alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

import structlog
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from pilotlight_core.bus import Bus, BusError, DecodedMessage, Lease
from pilotlight_core.model.messages.usage import UsageBatch
from pilotlight_core.model.subjects import USAGE_STREAM
from pilotlight_gateway.duties.leased import while_leased
from pilotlight_gateway.ledger.ledger_store import FoldReport, Ledger
from pilotlight_gateway.ledger.usage_delivery import UsageDelivery, delivery_of

FOLD_EVERY = 0.5
"""Seconds of messages per transaction."""
EVENTS_AT_A_TIME = 5_000
MESSAGES_AHEAD = 256
PRUNE_EVERY = 3_600.0
KEPT_SECONDS = 100 * 86_400.0
"""Retention of single intervals and receipts."""
TOLD_EVERY = 10.0
"""Seconds between two log lines about usage that does not fit."""
REFUSALS = (DataError, IntegrityError, ArithmeticError, ValueError, TypeError)
"""What the database and its driver raise for values that they do not take, rather than because they are away."""

log = structlog.get_logger(__name__)


class LedgerFolder:
    """Folds usage while it holds the lease."""

    def __init__(self, bus: Bus, ledger: Ledger, *, holder: str) -> None:
        self._bus = bus
        self._ledger = ledger
        self._holder = holder
        self._pruned = self._told = float("-inf")
        self._untold = 0

    async def run(self) -> None:
        """Run until cancelled."""
        lease = self._bus.lease("duty.fold", self._holder)
        await while_leased(self._bus, lease, self._fold_all, retried=(SQLAlchemyError, BusError))

    async def _fold_all(self, lease: Lease) -> None:
        queue: asyncio.Queue[DecodedMessage] = asyncio.Queue(MESSAGES_AHEAD)
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read(queue, await self._first()))
            while True:
                deliveries = await _gather(queue)
                if not lease.valid(time.monotonic()):
                    break
                await self._fold(deliveries)
            reading.cancel()

    async def _first(self) -> int:
        """The next sequence number; 1 if the stream is shorter than what was folded, and so a new one."""
        folded = await asyncio.to_thread(self._ledger.last_seq, USAGE_STREAM)
        return folded + 1 if folded <= await self._bus.jetstream.last_sequence(USAGE_STREAM) else 1

    async def _read(self, queue: asyncio.Queue[DecodedMessage], start: int) -> None:
        async for stored in self._bus.read_stream(USAGE_STREAM, "usage.>", start=start, follow=True):
            await queue.put(stored)

    async def _fold(self, deliveries: list[UsageDelivery]) -> None:
        try:
            self._report(await self._store(deliveries))
        except REFUSALS:
            log.exception("the database refused usage; each message goes alone", messages=len(deliveries))
            for delivery in deliveries:
                self._report(await self._store_alone(delivery))
        await self._prune()

    async def _store(self, deliveries: list[UsageDelivery]) -> FoldReport:
        return await asyncio.to_thread(self._ledger.fold, USAGE_STREAM, deliveries[-1].seq, deliveries)

    async def _store_alone(self, delivery: UsageDelivery) -> FoldReport:
        try:
            return await self._store([delivery])
        except REFUSALS as error:
            return await asyncio.to_thread(
                self._ledger.fold_around, USAGE_STREAM, delivery.seq, delivery, f"{error!r:.500}"
            )

    def _report(self, folded: FoldReport) -> None:
        """Say that usage does not fit, with a bound on the rate."""
        at = time.monotonic()
        self._untold += folded.quarantined
        if (self._untold or folded.unpriced) and at - self._told > TOLD_EVERY:
            self._told = at
            log.warning(
                "usage needs a look", quarantined=self._untold, unpriced=folded.unpriced, seq=folded.seq,
                see="pilotlight node quarantine",
            )  # fmt: skip
            self._untold = 0

    async def _prune(self) -> None:
        at = time.monotonic()
        if at - self._pruned > PRUNE_EVERY:
            self._pruned = at
            await asyncio.to_thread(self._ledger.prune, time.time() - KEPT_SECONDS)


async def _gather(queue: asyncio.Queue[DecodedMessage]) -> list[UsageDelivery]:
    """The messages within FOLD_EVERY of the next one."""
    found = [await _next(queue)]
    events = _events_in(found[0])
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(FOLD_EVERY):
            while events < EVENTS_AT_A_TIME and len(found) < EVENTS_AT_A_TIME:
                found.append(await _next(queue))
                events += _events_in(found[-1])
    return found


async def _next(queue: asyncio.Queue[DecodedMessage]) -> UsageDelivery:
    stored = await queue.get()
    return delivery_of(stored.seq, stored.subject, stored.at, stored.message)


def _events_in(delivery: UsageDelivery) -> int:
    return len(delivery.message.events) if isinstance(delivery.message, UsageBatch) else 0
