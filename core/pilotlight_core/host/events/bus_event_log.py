"""Events in a stream of the bus, which is bounded: the oldest go.

An event is for people. So whoever has one does not wait, a bus that is away costs at most those that do not fit in
memory, and of a kind that comes again and again (a function that flaps) few are kept in a minute.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import structlog
from cachetools import LRUCache
from prometheus_client.core import Metric

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.host.metrics.metric_families import counter
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import PlatformEvent
from pilotlight_core.model.messages.wire import encode

KEPT = 1_024
"""Events that wait to be stored."""
OF_A_KIND, WITHIN_S = 12, 60.0
"""So many of one kind about one function (or tenant) are kept in a minute."""
OF_THE_PLATFORM = 600
"""So many of one kind that concern no tenant: decisions about all functions, nodes of a whole rack."""
KINDS = 10_000
"""Of which that is known."""
STORED_WITHIN_S = 5.0
RETRY_S = 1.0

log = structlog.get_logger(__name__)


class EventRate:
    """Lets few of a kind pass in a minute. Pure: instants are unix seconds."""

    def __init__(self) -> None:
        self._seen: LRUCache[tuple[str, str, str], deque[float]] = LRUCache(KINDS)

    def passes(self, event: PlatformEvent) -> bool:
        """Whether this one is kept; it counts then."""
        key = (event.kind, event.tenant, event.function)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = deque(maxlen=OF_A_KIND if event.tenant else OF_THE_PLATFORM)
        if len(seen) == seen.maxlen and event.at - seen[0] < WITHIN_S:
            return False
        seen.append(event.at)
        return True


class BusEventLog:
    """The `EventLog` of a process; `running` stores what it takes."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._region = region
        self._rate = EventRate()
        self._waiting: deque[tuple[str, PlatformEvent]] = deque()
        """Each with an id, under which it is stored once however often that is tried."""
        self._has_some = asyncio.Event()
        self.dropped = 0
        """Events that nobody will see: there were too many, or they could not be encoded."""

    def note(self, event: PlatformEvent) -> None:
        if len(self._waiting) >= KEPT or not self._rate.passes(event):
            self.dropped += 1
            return
        self._waiting.append((token(), event))
        self._has_some.set()

    async def store(self, event: PlatformEvent, name: str) -> None:
        await self._publish(name, event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Store them until the block ends, which does not wait for the last ones."""
        async with asyncio.TaskGroup() as group:
            storing = group.create_task(self._store_all())
            try:
                yield
            finally:
                storing.cancel()

    async def _store_all(self) -> None:
        while True:
            await self._has_some.wait()
            while self._waiting:
                if not await self._is_over(*self._waiting[0]):
                    await asyncio.sleep(RETRY_S)
                    continue
                self._waiting.popleft()
            self._has_some.clear()

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        text = "Events that nobody will see: too many of a kind, or more than wait for the bus."
        yield counter("pilotlight_events_dropped", text, self.dropped)

    async def _is_over(self, name: str, event: PlatformEvent) -> bool:
        """Whether it need not be tried again."""
        try:
            await self._publish(name, event)
        except (BusError, OSError) as error:
            log.warning("an event is told later", kind=event.kind, error=str(error))
            return False
        except Exception:  # one that cannot be sent keeps none of the others
            log.exception("an event is lost", kind=event.kind)
            self.dropped += 1
        return True

    async def _publish(self, name: str, event: PlatformEvent) -> None:
        subject = subjects.platform_events(self._region, event.tenant, event.kind)
        await self._bus.jetstream.store(subject, encode(event), message_id=name, timeout=STORED_WITHIN_S)
