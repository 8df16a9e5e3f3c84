"""Log lines on their way to the LOGS stream: gathered per function, and bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import structlog

from pilotlight_core.bus import BusError, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_messages import Message
from pilotlight_core.model.messages.logs import LogBatch, LogLine

log = structlog.get_logger(__name__)

EVERY_S = 0.1
BATCH_LINES = 256
BATCH_BYTES = 256 * 1024
WAITING_BYTES = 32 * 2**20
"""Of all waiting lines; beyond it new ones are dropped and counted."""
LINE_BYTES = 200
"""Of a line besides its text."""
STORE_S = 5.0


class LogKey(NamedTuple):
    tenant: str
    app: str
    function: str


class LogStore(Protocol):
    async def store(self, subject: str, message: Message, *, id: str, timeout: float) -> int:  # noqa: A002
        """Keep a message for good; raises BusError when it could not be confirmed."""


@dataclass(kw_only=True)
class _Buffer:
    lines: deque[LogLine] = field(default_factory=deque)
    stuck: tuple[str, list[LogLine]] | None = None
    """A batch that may be stored already: it is repeated unchanged, under its id."""
    dropped: int = 0


@dataclass(frozen=True, kw_only=True)
class ShipperStatistics:
    waiting_bytes: int
    shipped: int
    dropped: int


class LogShipper:
    """`offer` never waits; `run` stores the offered lines until cancelled."""

    def __init__(self, store: LogStore, *, region: str, node: str, instance: str) -> None:
        self._store = store
        self._region = region
        self._node = node
        self._instance = instance
        self._buffers: dict[LogKey, _Buffer] = {}
        self._bytes = self._number = self._shipped = self._dropped = 0
        self._full = asyncio.Event()

    def offer(self, topic: LogKey, line: LogLine) -> None:
        buffer = self._buffers.get(topic)
        if buffer is None:
            buffer = self._buffers[topic] = _Buffer()
        if self._bytes > WAITING_BYTES:
            buffer.dropped += 1
            self._dropped += 1
            return
        if buffer.dropped:
            text = f"{buffer.dropped} lines were dropped: the log could not be stored"
            buffer.dropped = 0
            self._add(buffer, LogLine(line.at, "platform", text, line.container))
        self._add(buffer, line)

    def statistics(self) -> ShipperStatistics:
        return ShipperStatistics(waiting_bytes=self._bytes, shipped=self._shipped, dropped=self._dropped)

    async def run(self) -> None:
        """Store waiting lines each 100 ms, sooner when a batch is full."""
        while True:
            try:
                async with asyncio.timeout(EVERY_S):
                    await self._full.wait()
            except TimeoutError:
                pass
            self._full.clear()
            await self.ship()

    async def ship(self) -> None:
        """Store all waiting lines; while the bus is down they go on waiting."""
        for topic, buffer in list(self._buffers.items()):
            while buffer.lines or buffer.stuck:
                if not await self._ship(topic, buffer):
                    return
            if not buffer.dropped:
                self._buffers.pop(topic, None)

    async def _ship(self, topic: LogKey, buffer: _Buffer) -> bool:
        if buffer.stuck is None:
            self._number += 1
            buffer.stuck = (f"{self._instance}.{self._number}", _batch(buffer.lines))
        number, lines = buffer.stuck
        subject, batch = subjects.logs(self._region, self._node, *topic), LogBatch(lines=tuple(lines))
        try:
            await self._store.store(subject, batch, id=number, timeout=STORE_S)
        except MessageTooLarge as error:  # tried again it would block all others for ever
            log.error("log lines were dropped", lines=len(lines), error=str(error))
            self._dropped += len(lines)
        except BusError as error:
            log.warning("log lines are not stored yet", waiting_bytes=self._bytes, error=str(error))
            return False
        else:
            self._shipped += len(lines)
        buffer.stuck = None
        self._bytes -= sum(map(_size, lines))
        return True

    def _add(self, buffer: _Buffer, line: LogLine) -> None:
        buffer.lines.append(line)
        self._bytes += _size(line)
        if len(buffer.lines) >= BATCH_LINES:
            self._full.set()


def _batch(lines: deque[LogLine]) -> list[LogLine]:
    batch = [lines.popleft()]
    size = _size(batch[0])
    while lines and len(batch) < BATCH_LINES and size + _size(lines[0]) <= BATCH_BYTES:
        size += _size(lines[0])
        batch.append(lines.popleft())
    return batch


def _size(line: LogLine) -> int:
    return LINE_BYTES + 2 * len(line.text)
