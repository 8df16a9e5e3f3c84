"""Stores what is told of compared calls in their stream, a few hundred at a time; nobody waits for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import structlog
from prometheus_client.core import Metric

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.host.metrics.metric_families import counter
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import ComparedCalls
from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.messages.wire import encode

KEPT = 20_000
"""Calls that wait; of more the oldest are lost, and counted."""
AT_ONCE = 64
"""Of one message: its judge folds it in a millisecond."""
EVERY_S = 0.2
STORED_WITHIN_S = 5.0
RETRY_S = 1.0

log = structlog.get_logger(__name__)


class ComparedFeed:
    """Of one gateway; `running` stores what `note` takes."""

    def __init__(self, bus: Bus, *, region: str, gateway: str) -> None:
        self._bus = bus
        self._region = region
        self._gateway = gateway
        self._waiting: dict[tuple[str, str], deque[ComparedCall]] = {}
        """By owner and app."""
        self._count = 0
        self._sending: tuple[str, bytes, str, int] | None = None
        """A message that is not known to be stored: its subject, its bytes, its id, and its calls."""
        self._has_some = asyncio.Event()
        self.dropped = 0
        self.stored = 0

    def note(self, tenant: str, app: str, call: ComparedCall) -> None:
        waiting = self._waiting.setdefault((tenant, app), deque())
        waiting.append(call)
        self._count += 1
        if self._count > KEPT:
            max(self._waiting.values(), key=len).popleft()
            self._count -= 1
            self.dropped += 1
        self._has_some.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Store them until the block ends, and then what is left, for a moment."""
        async with asyncio.TaskGroup() as group:
            storing = group.create_task(self._store_all())
            try:
                yield
            finally:
                storing.cancel()
                try:
                    async with asyncio.timeout(1.0):
                        await self._store_waiting()
                except (TimeoutError, BusError, OSError):
                    self.dropped += self._count

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        text = "Calls of rollouts that were told to their judge."
        yield counter("pilotlight_rollout_calls_told", text, self.stored)
        text = "Calls of rollouts that their judge will not hear of."
        yield counter("pilotlight_rollout_calls_dropped", text, self.dropped)

    async def _store_all(self) -> None:
        while True:
            await self._has_some.wait()
            await asyncio.sleep(EVERY_S)
            self._has_some.clear()
            try:
                await self._store_waiting()
            except (BusError, OSError) as error:
                log.warning("compared calls are told later", error=str(error))
                self._has_some.set()
                await asyncio.sleep(RETRY_S)
            except Exception:  # what can never be stored, or not be written, holds nothing else up
                log.exception("compared calls are lost")
                self.dropped += self._sending[3] if self._sending is not None else 0
                self._sending = None
                self._has_some.set()
                await asyncio.sleep(RETRY_S)

    async def _store_waiting(self) -> None:
        """Raises BusError, OSError: what was not stored is sent again, under the id that it had."""
        while self._sending is not None or self._take():
            subject, data, name, count = self._sending or ("", b"", "", 0)
            await self._bus.jetstream.store(subject, data, message_id=name, timeout=STORED_WITHIN_S)
            self._sending = None
            self.stored += count

    def _take(self) -> bool:
        """Make the next message, if calls wait."""
        for (tenant, app), waiting in self._waiting.items():
            calls = tuple(waiting.popleft() for _ in range(min(AT_ONCE, len(waiting))))
            self._count -= len(calls)
            if not waiting:
                del self._waiting[tenant, app]
            message = ComparedCalls(tenant=tenant, app=app, gateway=self._gateway, calls=calls)
            self._sending = subjects.compared(self._region, tenant, app), encode(message), token(), len(calls)
            return True
        return False
