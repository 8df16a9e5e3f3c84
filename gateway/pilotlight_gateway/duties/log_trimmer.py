"""The duty that keeps the last 10 MB of what a node writes of a function, and the last 256 MB of all that it writes.

The bounds are a node's, so that none displaces what others have written. The stream itself drops lines older than a
day. The duty counts from zero when it starts, so a log may grow to twice its bound after a restart.
"""

from __future__ import annotations

import time
from collections import deque

import structlog
from cachetools import LRUCache

from pilotlight_core.bus import Bus, DecodedMessage, Lease, Undecodable
from pilotlight_core.model.messages.logs import LogBatch
from pilotlight_core.model.subjects import LOGS_STREAM
from pilotlight_gateway.duties.leased import while_leased

KEPT_BYTES = 10 * 10**6
"""Of one node's lines of one function."""
NODE_BYTES = 256 * 10**6
"""Of all lines of one node."""
SLACK = 0.1
"""More than necessary is trimmed, so that a busy function is not trimmed at every line."""
COUNTED = 10_000
"""The most recent logs, which are counted."""

log = structlog.get_logger(__name__)


class LogSizes:
    """Counts the growth of logs, by their subjects. Pure."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._of: LRUCache[str, tuple[deque[tuple[int, int]], list[int]]] = LRUCache(COUNTED)

    def add(self, subject: str, seq: int, size: int) -> int | None:
        """Count a batch of `size` bytes; returns the sequence below which to purge, if the log is too long."""
        batches, total = self._of.setdefault(subject, (deque(), [0]))
        batches.append((seq, size))
        total[0] += size
        if total[0] <= self._kept:
            return None
        while len(batches) > 1 and total[0] > self._kept * (1 - SLACK):
            total[0] -= batches.popleft()[1]
        return batches[0][0]


class LogTrimmer:
    """Trims logs while it holds the lease."""

    def __init__(self, bus: Bus, *, holder: str, kept: int = KEPT_BYTES) -> None:
        self._bus = bus
        self._holder = holder
        self._kept = kept

    async def run(self) -> None:
        """Run until cancelled."""
        await while_leased(self._bus, self._bus.lease("duty.logs", self._holder), self._trim)

    async def _trim(self, lease: Lease) -> None:
        functions, nodes = LogSizes(self._kept), LogSizes(NODE_BYTES)
        async for stored in self._bus.read_stream(LOGS_STREAM, "logs.>", start="new", follow=True):
            if not lease.valid(time.monotonic()):
                return
            size = _bytes_of(stored)
            for sizes, subject in ((functions, stored.subject), (nodes, _of_node(stored.subject))):
                before = sizes.add(subject, stored.seq, size)
                if before is not None:
                    gone = await self._bus.purge_before(LOGS_STREAM, subject, before)
                    log.info("log trimmed", subject=subject, batches=gone)


def _bytes_of(stored: DecodedMessage) -> int:
    match stored.message:
        case LogBatch(lines=lines):
            return sum(len(line.text) for line in lines)
        case Undecodable(data=data):
            return len(data)
    return 0


def _of_node(subject: str) -> str:
    """All subjects of the node that a subject names."""
    return ".".join((*subject.split(".")[:3], ">"))
