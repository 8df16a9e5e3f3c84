"""The duty that folds usage into the ledger, which ignores repeated events: the lease only saves work.

What has no place in the ledger goes into quarantine, and the fold goes on. A message that the database refuses all the
same is found by folding each message of the failed part alone. One that cannot be read is kept, and tried again when
the fold starts and each hour.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import get_args

import msgspec
import structlog
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from pilotlight_core.bus import Bus, BusError, DecodedMessage, Lease
from pilotlight_core.host.price_records import read_prices
from pilotlight_core.model.messages.usage import UsageBatch
from pilotlight_core.model.subjects import REGISTRY_BUCKET, USAGE_STREAM
from pilotlight_gateway.duties.usage_room import UsageRoom
from pilotlight_gateway.leased import while_leased
from pilotlight_gateway.ledger.ledger_store import KEPT_SECONDS, FoldReport, FoldResult, Ledger
from pilotlight_gateway.ledger.ledger_verification import verify
from pilotlight_gateway.ledger.unread_usage import KEPT_S, UnreadCount, UnreadMessage
from pilotlight_gateway.ledger.usage_checks import UsageFault
from pilotlight_gateway.ledger.usage_delivery import UsageDelivery, delivery_of
from pilotlight_gateway.reports.billing_periods import closed_until

FOLD_EVERY = 0.5
"""Seconds of messages per transaction."""
EVENTS_AT_A_TIME = 5_000
MESSAGES_AHEAD = 256
PRUNE_EVERY = 3_600.0
ROOM_EVERY = 10.0
"""Seconds between two looks at the room in the stream."""
VERIFY_EVERY = 6 * 3_600.0
"""Seconds between two recomputations of the last days' sums."""
VERIFY_FIRST = 600.0
"""Seconds until the first one: a start has enough to do."""
VERIFIED_DAYS = 2
"""That are over. What comes late for them is in lines and sums alike."""
PRICES_EVERY = 10.0
"""Seconds between two looks at the registry's prices."""
TOLD_EVERY = 10.0
"""Seconds between two log lines about usage that does not fit."""
REFUSALS = (DataError, IntegrityError, ArithmeticError, ValueError, TypeError)
"""What the database and its driver raise for values that they do not take, rather than because they are away."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class FoldStatistics:
    """What is folded, and what waits for the fold."""

    results: Mapping[str, int]
    """Events folded so far, by result."""
    unread: int
    """Messages that this release cannot read."""
    unread_seconds: float
    """How long the oldest of them has waited."""
    filled: float
    """The filled part of the stream, from 0.0 to 1.0."""
    behind_seconds: float = 0.0
    """How long the usage that is folded now has been in the stream."""
    verified_seconds: float = 0.0
    """How long ago the sums of the last days were recomputed from their lines, or this process began to fold."""
    differs: bool = False
    """Whether they did not add up then."""


class LedgerFolder:
    """Folds usage while it holds the lease."""

    def __init__(self, bus: Bus, ledger: Ledger, *, holder: str, room_every: float = ROOM_EVERY) -> None:
        """`room_every`: seconds between two looks at the room in the stream."""
        self._bus = bus
        self._ledger = ledger
        self._holder = holder
        self._registry = bus.kv(REGISTRY_BUCKET)
        self._priced: frozenset[str] = frozenset()
        self._room = UsageRoom(bus, ledger)
        self._room_every = room_every
        self._unread: UnreadCount | None = None
        self._results: Counter[str] = Counter()
        self._pruned = self._told = float("-inf")
        self._oldest_at: float | None = None
        """Wall clock: when the oldest of what is being folded was stored; None: nothing is."""
        self._verified_at = math.inf
        self._differs = False
        self._untold = 0

    def statistics(self) -> FoldStatistics | None:
        """How much waits, as it was last counted; None: another process folds."""
        if (unread := self._unread) is None:
            return None
        at = time.time()
        waits = at - unread.oldest_at if unread.messages else 0.0
        return FoldStatistics(
            results=self._results,
            unread=unread.messages,
            unread_seconds=max(0.0, waits),
            filled=self._room.filled,
            behind_seconds=max(0.0, at - self._oldest_at) if self._oldest_at is not None else 0.0,
            verified_seconds=max(0.0, at - self._verified_at),
            differs=self._differs,
        )

    async def run(self) -> None:
        """Run until cancelled."""
        lease = self._bus.lease("duty.fold", self._holder)
        await while_leased(self._bus, lease, self._fold_all, retried=(SQLAlchemyError, BusError))

    async def _fold_all(self, lease: Lease) -> None:
        queue: asyncio.Queue[DecodedMessage] = asyncio.Queue(MESSAGES_AHEAD)
        try:
            await self._read_prices()
            self._results = Counter(await asyncio.to_thread(self._ledger.results))
            self._verified_at = min(self._verified_at, time.time())
            await self._fold_unread()
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(self._read(queue, await self._first()))
                # Apart from the fold: nothing arrives while the stream is full.
                room = group.create_task(self._make_room(lease))
                prices = group.create_task(self._follow_prices(lease))
                verifying = group.create_task(self._verify_days(lease))
                while True:
                    deliveries = await _gather(queue)
                    if not lease.valid(time.monotonic()):
                        break
                    self._oldest_at = deliveries[0].at
                    await self._fold(deliveries)
                    self._oldest_at = None
                reading.cancel()
                room.cancel()
                prices.cancel()
                verifying.cancel()
        finally:
            self._unread = None

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

    async def _make_room(self, lease: Lease) -> None:
        while lease.valid(time.monotonic()):
            try:
                await self._room.make()
            except BusError as error:  # the fold goes on without
                log.warning("no room could be made in the stream of usage", error=str(error))
            await asyncio.sleep(self._room_every)

    async def _follow_prices(self, lease: Lease) -> None:
        while lease.valid(time.monotonic()):
            await asyncio.sleep(PRICES_EVERY)
            try:
                await self._read_prices()
            except BusError as error:  # those that are known hold on
                log.warning("the registry's prices could not be read", error=str(error))

    async def _verify_days(self, lease: Lease) -> None:
        """Recompute the sums of the last days from their lines, now and then: they are never assumed to add up."""
        await asyncio.sleep(VERIFY_FIRST)
        while lease.valid(time.monotonic()):
            await self.verify_days(time.time())
            await asyncio.sleep(VERIFY_EVERY)

    async def verify_days(self, at: float) -> None:
        """Recompute those before the wall clock's `at`."""
        today = datetime.fromtimestamp(at, UTC).date()
        first = today - timedelta(days=VERIFIED_DAYS)
        found = await asyncio.to_thread(verify, self._ledger, first.isoformat(), today.isoformat())
        self._differs, self._verified_at = found.discrepancy is not None, at
        if found.discrepancy is not None:
            difference = msgspec.to_builtins(found.discrepancy)
            log.error("the ledger's sums are not those of its lines", **difference, see="pilotlight ledger verify")

    async def _read_prices(self) -> None:
        self._priced = await read_prices(self._registry, self._ledger.book, self._priced)

    async def _fold_unread(self) -> None:
        """Fold the kept messages that can be read by now."""
        after, at = 0, time.time()
        while page := await asyncio.to_thread(self._ledger.unread, after, at):
            after = page[-1].id
            if readable := [each for each in page if each.is_read]:
                log.info("usage that was kept unread is folded", messages=len(readable))
                await self._fold_page(readable)
            for each in page:
                if not each.is_read and at - each.delivery.at > KEPT_S:
                    await self._give_up(each, UsageFault.UNREADABLE, each.delivery.message.error)
        self._unread = await asyncio.to_thread(self._ledger.unread_count)

    async def _fold_page(self, readable: list[UnreadMessage]) -> None:
        try:
            self._report(await asyncio.to_thread(self._ledger.fold_unread, USAGE_STREAM, readable))
        except REFUSALS as error:
            if len(readable) == 1:
                await self._give_up(readable[0], UsageFault.NOT_STORED, f"{error!r:.500}")
                return
            for each in readable:
                await self._fold_page([each])

    async def _give_up(self, message: UnreadMessage, reason: UsageFault, why: str) -> None:
        self._report(await asyncio.to_thread(self._ledger.give_up_unread, USAGE_STREAM, message, reason, why))

    async def _store(self, deliveries: list[UsageDelivery]) -> FoldReport:
        done = await asyncio.to_thread(self._ledger.fold, USAGE_STREAM, deliveries[-1].seq, deliveries)
        if done.unread:
            self._unread = await asyncio.to_thread(self._ledger.unread_count)
            log.warning("usage is kept that this release cannot read", messages=done.unread, seq=done.seq)
        return done

    async def _store_alone(self, delivery: UsageDelivery) -> FoldReport:
        try:
            return await self._store([delivery])
        except REFUSALS as error:
            return await asyncio.to_thread(
                self._ledger.fold_around, USAGE_STREAM, delivery.seq, delivery, f"{error!r:.500}"
            )

    def _report(self, folded: FoldReport) -> None:
        """Say that usage does not fit, with a bound on the rate."""
        for result in get_args(FoldResult):
            self._results[result] += getattr(folded, result)
        at = time.monotonic()
        self._untold += folded.quarantined
        if (self._untold or folded.unpriced) and at - self._told > TOLD_EVERY:
            self._told = at
            log.warning(
                "usage needs a look", quarantined=self._untold, unpriced=folded.unpriced, seq=folded.seq,
                see="pilotlight node quarantine, pilotlight price list",
            )  # fmt: skip
            self._untold = 0

    async def _prune(self) -> None:
        at = time.monotonic()
        if at - self._pruned > PRUNE_EVERY:
            self._pruned = at
            await asyncio.to_thread(self._ledger.prune, time.time() - KEPT_SECONDS)
            await asyncio.to_thread(self._close_months, time.time())
            await self._fold_unread()

    def _close_months(self, at: float) -> None:
        if (until := closed_until(at)) > self._ledger.open_from():
            self._ledger.close_days(until, at)
            log.info("months are closed", until=until)


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
    return delivery_of(stored.seq, stored.subject, stored.at, stored.message, time.time())


def _events_in(delivery: UsageDelivery) -> int:
    return len(delivery.message.events) if isinstance(delivery.message, UsageBatch) else 0
