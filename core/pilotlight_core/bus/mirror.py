"""A live copy of a part of a bucket that knows its age.

A `Mirror` follows the bucket's stream by sequence. Every answer of the server confirms the copy as of the instant of
the request. Callers check `fresh` and fail closed. After a silence in which markers of deleted keys may have expired,
the mirror reads the whole prefix again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType

import structlog

from pilotlight_core.bus.client import Subscription
from pilotlight_core.bus.connection import BusConnection
from pilotlight_core.bus.jetstream import StreamMessage
from pilotlight_core.bus.kv import KvEntry
from pilotlight_core.bus.reader import POLL_S, StreamCursor
from pilotlight_core.bus.streams import MARKER_TTL, bucket_stream, key_subject

log = structlog.get_logger(__name__)

FRESH_FOR_S = 30.0
RELOAD_AFTER_S = MARKER_TTL / 4
"""Seconds of silence after which deletions may have been missed."""

OnChange = Callable[[str, KvEntry | None], None]
"""(key, entry): the new value of the key; None: the key is gone."""


class Mirror:
    """The keys below a prefix. Entering the context reads them once and starts following."""

    def __init__(self, bus: BusConnection, bucket: str, prefix: str = "") -> None:
        self._bus = bus
        self._kv = bus.kv(bucket)
        self._start = len(key_subject(bucket, ""))
        self._subject = key_subject(bucket, f"{prefix}>")
        self._position = StreamCursor(bus, bucket_stream(bucket), self._subject)
        self._entries: dict[str, KvEntry] = {}
        self._confirmed_at = float("-inf")
        self._reload = False
        self._task: asyncio.Task[None] | None = None
        self._bell: Subscription | None = None
        self.on_change: list[OnChange] = []

    async def __aenter__(self) -> Mirror:
        self._bell = await self._bus.doorbell(self._subject, self._position.ring)
        await self._catch_up()
        self._bus.on_reconnect.append(self._reconnected)
        self._task = self._bus.spawn(self._follow())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bus.on_reconnect.remove(self._reconnected)
        if self._task is not None:
            await self._bus.end(self._task)
        if self._bell is not None:
            await self._bell.unsubscribe()

    def get(self, key: str) -> KvEntry | None:
        return self._entries.get(key)

    def items(self) -> list[tuple[str, KvEntry]]:
        return list(self._entries.items())

    def __len__(self) -> int:
        return len(self._entries)

    def age(self, at: float) -> float:
        """Seconds since the server last confirmed this copy; `at` is monotonic."""
        return at - self._confirmed_at

    def fresh(self, at: float) -> bool:
        return self.age(at) <= FRESH_FOR_S

    async def fetch(self, key: str) -> KvEntry | None:
        """The server's present value, which the copy takes over.

        Raises:
            BusDown, BusTimeout.
        """
        record = await self._kv.read(key)
        if record is not None:
            self._apply(record)
        elif key in self._entries:
            self._reload = True
            self._position.ring()
        return KvEntry(record.data, record.seq) if record is not None and not record.gone else None

    async def _follow(self) -> None:
        while True:
            await self._position.wait_bell(POLL_S)
            if self._reload or self.age(time.monotonic()) > RELOAD_AFTER_S:
                await self._read_anew()
            else:
                await self._catch_up()

    async def _reconnected(self) -> None:
        self._reload = True
        self._position.ring()

    async def _catch_up(self) -> None:
        async for record in self._to_the_end():
            self._apply(record)

    async def _read_anew(self) -> None:
        self._reload = False
        self._position.next = 1
        found: dict[str, KvEntry] = {}
        async for record in self._to_the_end():
            if not record.gone:
                found[self._key(record)] = KvEntry(record.data, record.seq)
        old, self._entries = self._entries, found
        for key in old.keys() - found.keys():
            self._notify(key, None)
        for key, entry in found.items():
            if key not in old or old[key].revision != entry.revision:
                self._notify(key, entry)

    async def _to_the_end(self) -> AsyncIterator[StreamMessage]:
        while True:
            # If the page has to be requested again, the age comes out too high, which is the safe side.
            asked_at = time.monotonic()
            page = await self._position.read()
            for record in page.records:
                yield record
            if not page.pending:
                self._confirmed_at = max(self._confirmed_at, asked_at)
                return

    def _key(self, record: StreamMessage) -> str:
        return record.subject[self._start :]

    def _apply(self, record: StreamMessage) -> None:
        key = self._key(record)
        old = self._entries.get(key)
        if record.gone:
            if old is not None and old.revision < record.seq:
                del self._entries[key]
                self._notify(key, None)
        elif old is None or old.revision < record.seq:
            self._entries[key] = KvEntry(record.data, record.seq)
            self._notify(key, self._entries[key])

    def _notify(self, key: str, entry: KvEntry | None) -> None:
        for callback in self.on_change:
            try:
                callback(key, entry)
            except Exception:
                log.exception("a mirror's callback raised", key=key)
