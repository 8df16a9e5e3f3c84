"""Log lines on their way to the LOGS stream: gathered per function, and bounded."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import structlog

from pilotlight_core.bus import BusError, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.logs.tenant_log_rates import TenantLogRates

log = structlog.get_logger(__name__)

EVERY_S = 0.1
BATCH_LINES = 256
BATCH_BYTES = 256 * 1024
WAITING_BYTES = 32 * 2**20
"""Of all waiting lines; beyond it new ones are dropped and counted."""
WAITING_OF_TENANT = WAITING_BYTES // 4
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


@dataclass
class DroppedLines:
    why: str = ""
    """The limit, once the log says that lines are dropped."""
    lines: int = 0
    bytes: int = 0
    container: str = ""
    """The last one that wrote one."""


@dataclass(kw_only=True)
class _Buffer:
    lines: deque[LogLine] = field(default_factory=deque)
    stuck: tuple[str, list[LogLine]] | None = None
    """A batch that may be stored already: it is repeated unchanged, under its id."""
    dropped: int = 0
    over: DroppedLines = field(default_factory=DroppedLines)
    """Beyond the tenant's limit."""


@dataclass(frozen=True, kw_only=True)
class ShipperStatistics:
    waiting_bytes: int
    shipped: int
    dropped: int


class LogShipper:
    """`offer` never waits; `run` stores the offered lines until cancelled."""

    def __init__(
        self,
        store: LogStore,
        *,
        region: str,
        node: str,
        instance: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rates = TenantLogRates()
        self._of_tenant: Counter[str] = Counter()
        self._region = region
        self._node = node
        self._instance = instance
        self._buffers: dict[LogKey, _Buffer] = {}
        self._bytes = self._number = self._shipped = self._dropped = 0
        self._full = asyncio.Event()
        self._offered = asyncio.Event()

    def offer(self, topic: LogKey, line: LogLine) -> None:
        buffer = self._buffers.get(topic)
        if buffer is None:
            buffer = self._buffers[topic] = _Buffer()
            self._offered.set()
        if not self._rates.admit(topic.tenant, line.text_bytes, self._clock()):
            self._drop_over(topic, buffer, line)
            return
        self._report_over(topic, buffer)
        if self._bytes > WAITING_BYTES or self._of_tenant[topic.tenant] > WAITING_OF_TENANT:
            buffer.dropped += 1
            self._dropped += 1
            return
        if buffer.dropped:
            text = f"{buffer.dropped} lines were dropped: the log could not be stored"
            buffer.dropped = 0
            self._add(topic, buffer, LogLine(line.at, "platform", text, line.container))
        self._add(topic, buffer, line)

    def set_limit(self, tenant: str, bytes_per_hour: int | None) -> None:
        """Hold the tenant's lines on this node to `bytes_per_hour`."""
        self._rates.set_limit(tenant, bytes_per_hour, self._clock())

    def statistics(self) -> ShipperStatistics:
        return ShipperStatistics(waiting_bytes=self._bytes, shipped=self._shipped, dropped=self._dropped)

    async def run(self) -> None:
        """Store waiting lines each 100 ms, sooner when a batch is full; without any it does nothing."""
        while True:
            if not self._buffers:
                self._offered.clear()
                await self._offered.wait()
            try:
                async with asyncio.timeout(EVERY_S):
                    await self._full.wait()
            except TimeoutError:
                pass
            self._full.clear()
            await self.ship()

    async def ship(self) -> None:
        """Store all waiting lines; while the bus is down they go on waiting."""
        # A batch of each in turn: one that never ends must not keep others waiting.
        waiting = True
        while waiting:
            waiting = False
            for topic, buffer in list(self._buffers.items()):
                self._report_over(topic, buffer)
                if buffer.lines or buffer.stuck:
                    if not await self._ship(topic, buffer):
                        return
                    waiting = True
                elif not buffer.dropped and not buffer.over.why:
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
        size = sum(map(_size, lines))
        self._bytes -= size
        self._of_tenant[topic.tenant] -= size
        if not self._of_tenant[topic.tenant]:
            del self._of_tenant[topic.tenant]
        return True

    def _drop_over(self, topic: LogKey, buffer: _Buffer, line: LogLine) -> None:
        over = buffer.over
        over.lines += 1
        over.bytes += line.text_bytes
        over.container = line.container
        self._dropped += 1
        if not over.why:
            over.why = self._rates.limit_text(topic.tenant)
            text = f"lines from here on are dropped for a while: {over.why}"
            self._add(topic, buffer, LogLine(line.at, "platform", text, line.container))

    def _report_over(self, topic: LogKey, buffer: _Buffer) -> None:
        """Say how many lines were dropped, once they pass again."""
        over = buffer.over
        if over.why and not self._rates.is_closed(topic.tenant, self._clock()):
            text = f"{over.lines} lines ({over.bytes / 1e6:.1f} MB) were dropped: {over.why}"
            self._add(topic, buffer, LogLine(time.time(), "platform", text, over.container))
            buffer.over = DroppedLines()

    def _add(self, topic: LogKey, buffer: _Buffer, line: LogLine) -> None:
        buffer.lines.append(line)
        size = _size(line)
        self._bytes += size
        self._of_tenant[topic.tenant] += size
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
    return LINE_BYTES + 2 * line.text_bytes
