"""The duty that bounds logs: the last 10 MB of what a node writes of a function, the last 256 MB of all that it writes,
and together less than the stream holds, which would drop the oldest of all.

Where tenants share a bound the one with the most on a node gives way: its oldest lines there go, so that a flood
displaces nothing of others, nor does what a node writes under their names elsewhere. The stream itself drops lines
older than a day. The duty counts from zero when it starts, so a log may grow to twice its bound after a restart.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import structlog
from cachetools import LRUCache

from pilotlight_core.bus import Bus, DecodedMessage, Lease, Undecodable
from pilotlight_core.bus.streams import DEFAULT_LIMITS
from pilotlight_core.model.messages.logs import LogBatch
from pilotlight_core.model.subjects import LOGS_STREAM
from pilotlight_gateway.leased import while_leased

KEPT_BYTES = 10 * 10**6
"""Of one node's lines of one function."""
NODE_BYTES = 256 * 10**6
"""Of all lines of one node."""
ALL_BYTES = DEFAULT_LIMITS.logs_bytes * 3 // 4
"""Of all lines: before the stream drops the oldest, whosever they are."""
SLACK = 0.1
"""More than necessary is trimmed, so that a busy function is not trimmed at every line."""
COUNTED = 10_000
"""The most recent logs, which are counted."""
PIECES = 1_024
"""In how many pieces a full log is remembered, which go one by one."""
TENANTS_OF_NODE = 1_000
"""Who are counted apart; further ones are counted together, and give way together."""
FURTHER_AT_MOST = 1_000
"""Of these, tenants whose names are remembered; beyond it the whole node gives way, which invents tenants."""
BATCH_BYTES, LINE_BYTES = 200, 100
"""What a batch and a line take in the stream besides the text."""

log = structlog.get_logger(__name__)


@dataclass
class _Part:
    """A part of a log: of each piece its first sequence and its size, the oldest first."""

    pieces: deque[tuple[int, int]] = field(default_factory=deque)
    total: int = 0

    def add(self, seq: int, size: int, piece: int) -> None:
        self.total += size
        if self.pieces and self.pieces[-1][1] + size <= piece:
            first, before = self.pieces.pop()
            self.pieces.append((first, before + size))
        else:
            self.pieces.append((seq, size))


@dataclass
class _Log:
    parts: dict[str, _Part] = field(default_factory=dict)
    total: int = 0


class LogSizes:
    """Counts the growth of logs, each of parts that are trimmed apart. Pure."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._piece = kept // PIECES
        self._of: LRUCache[str, _Log] = LRUCache(COUNTED)

    def add(self, name: str, part: str, seq: int, size: int) -> list[tuple[str, int]]:
        """Count `size` bytes; if the log is too long, returns the parts to purge, and the sequence below which."""
        counted = self._of.setdefault(name, _Log())
        counted.parts.setdefault(part, _Part()).add(seq, size, self._piece)
        counted.total += size
        return [] if counted.total <= self._kept else self._trim(counted)

    def _trim(self, counted: _Log) -> list[tuple[str, int]]:
        """Drop pieces of whichever part is the largest, until there is room; one piece of each stays."""
        purged: dict[str, int] = {}
        heap = [(-one.total, name) for name, one in counted.parts.items() if len(one.pieces) > 1]
        heapify(heap)
        while heap and counted.total > self._kept * (1 - SLACK):
            _, name = heappop(heap)
            one = counted.parts[name]
            gone = one.pieces.popleft()[1]
            one.total -= gone
            counted.total -= gone
            purged[name] = one.pieces[0][0]
            if len(one.pieces) > 1:
                heappush(heap, (-one.total, name))
        return list(purged.items())


class LogScopes:
    """The bounds that a batch counts under, by its subject. Pure. `everything` bounds all lines together."""

    def __init__(self, kept: int = KEPT_BYTES, everything: int = ALL_BYTES) -> None:
        self._functions, self._nodes, self._all = LogSizes(kept), LogSizes(NODE_BYTES), LogSizes(everything)
        self._tenants: dict[str, set[str]] = {}
        self._further: dict[str, dict[str, int]] = {}
        """Of each node, further tenants with the sequence of their last batch; ">" is those beyond them."""

    def add(self, subject: str, seq: int, size: int) -> list[tuple[str, int]]:
        """Count a batch; returns the subjects to purge, and the sequence below which."""
        node, tenant = ".".join(subject.split(".")[:3]), subject.split(".")[3]
        part = self._part(node, tenant, seq)
        purged = [
            *self._functions.add(subject, subject, seq, size),
            *self._nodes.add(node, part, seq, size),
            *self._all.add("", part, seq, size),
        ]
        return [one for name, before in purged for one in self._subjects(name, before)]

    def _part(self, node: str, tenant: str, seq: int) -> str:
        """All subjects of a tenant on a node, or of all its further tenants."""
        known = self._tenants.setdefault(node, set())
        if tenant in known or len(known) < TENANTS_OF_NODE:
            known.add(tenant)
            return f"{node}.{tenant}.>"
        further = self._further.setdefault(node, {})
        further[tenant if tenant in further or len(further) < FURTHER_AT_MOST else ">"] = seq
        return f"{node}.>"

    def _subjects(self, part: str, before: int) -> list[tuple[str, int]]:
        """What to purge of a part: where it is further tenants, nothing of those that are counted apart."""
        node = part.removesuffix(".>")
        if (further := self._further.get(node)) is None:
            return [(part, before)]
        subjects = [part] if ">" in further else [f"{node}.{tenant}.>" for tenant in further]
        self._further[node] = {tenant: last for tenant, last in further.items() if last >= before}
        return [(subject, before) for subject in subjects]


class LogTrimmer:
    """Trims logs while it holds the lease."""

    def __init__(self, bus: Bus, *, holder: str, kept: int = KEPT_BYTES, everything: int = ALL_BYTES) -> None:
        self._bus = bus
        self._holder = holder
        self._kept = kept
        self._everything = everything

    async def run(self) -> None:
        """Run until cancelled."""
        await while_leased(self._bus, self._bus.lease("duty.logs", self._holder), self._trim)

    async def _trim(self, lease: Lease) -> None:
        scopes = LogScopes(self._kept, self._everything)
        async for stored in self._bus.read_stream(LOGS_STREAM, "logs.>", start="new", follow=True):
            if not lease.valid(time.monotonic()):
                return
            for subject, before in scopes.add(stored.subject, stored.seq, bytes_of(stored)):
                gone = await self._bus.purge_before(LOGS_STREAM, subject, before)
                log.info("log trimmed", subject=subject, batches=gone)


def bytes_of(stored: DecodedMessage) -> int:
    """About what a batch takes in the stream, rather more than less."""
    match stored.message:
        case LogBatch(lines=lines):
            return BATCH_BYTES + sum(LINE_BYTES + line.text_bytes for line in lines)
        case Undecodable(data=data):
            return BATCH_BYTES + len(data)
    return BATCH_BYTES
