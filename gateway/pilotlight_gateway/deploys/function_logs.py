"""Reads what functions print, from the LOGS stream."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from pilotlight_core.bus import Bus, DecodedMessage
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.logs import LogBatch, LogLine

MOST_LINES = 100_000
DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(s|m|h|d)?")
SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_AGO = 10 * 365 * 86_400.0


class FunctionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `GET /v1/apps/{app}/logs`."""

    at: float
    stream: str
    text: str
    container: str
    function: str
    call_id: str = msgspec.field(name="call", default="")


@dataclass(frozen=True, kw_only=True)
class LogQuery:
    """Lines since a unix second: the last `tail` of them, and new ones if `follow`."""

    tenant: str
    app: str
    function: str = "*"
    since: float = 0.0
    tail: int | None = None
    follow: bool = False


class LogSource(Protocol):
    """Yields batches of lines in stored order."""

    def batches(self, query: LogQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]: ...


@dataclass(frozen=True, kw_only=True)
class BusLogs:
    """A `LogSource` over the bus."""

    bus: Bus
    region: str

    def batches(self, query: LogQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:
        subject = subjects.logs(self.region, query.tenant, query.app, query.function)
        return self.bus.read_stream(subjects.LOGS_STREAM, subject, start=start, follow=follow)


@dataclass(kw_only=True)
class MemoryLogs:
    """An in-memory `LogSource`, which ends after `kept` even when followed."""

    kept: list[DecodedMessage] = field(default_factory=list)

    async def batches(self, query: LogQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:  # noqa: ARG002
        first = start if isinstance(start, int) else 0
        for batch in self.kept:
            _, _, tenant, app, function = batch.subject.split(".")
            if batch.seq >= first and (tenant, app) == (query.tenant, query.app) and query.function in ("*", function):
                yield batch


async def read_lines(source: LogSource, query: LogQuery) -> AsyncIterator[FunctionLine]:
    """The lines of `query`, oldest first; with `follow` the iterator does not end."""
    start: str | int = "all"
    if query.tail is not None:
        last: deque[FunctionLine] = deque(maxlen=query.tail)
        async with aclosing(_lines(source, query, start, follow=False)) as lines:  # type: ignore[type-var]
            async for seq, line in lines:
                start = seq + 1
                last.append(line)
        for line in last:
            yield line
        if not query.follow:
            return
    async with aclosing(_lines(source, query, start, follow=query.follow)) as lines:  # type: ignore[type-var]
        async for _, line in lines:
            yield line


async def _lines(
    source: LogSource, query: LogQuery, start: str | int, *, follow: bool
) -> AsyncIterator[tuple[int, FunctionLine]]:
    async with aclosing(source.batches(query, start, follow=follow)) as batches:  # type: ignore[type-var]
        async for batch in batches:
            if isinstance(batch.message, LogBatch):
                for line in batch.message.lines:
                    if line.at >= query.since:
                        yield batch.seq, _named(line, batch.subject)


def _named(line: LogLine, subject: str) -> FunctionLine:
    return FunctionLine(
        at=line.at,
        stream=line.stream,
        text=line.text,
        container=line.container,
        function=subject.rpartition(".")[2],
        call_id=line.call_id,
    )


def read_since(text: str, now: float | None = None) -> float:
    """The unix second of `since=`: `90`, `10m` or `2h` ago; a number above ten years is a unix time.

    Raises:
        BadInput: `text` is neither.
    """
    found = DURATION.fullmatch(text)
    if found is None:
        raise BadInput("since: expected a time ago such as 30s, 10m or 2h, or unix seconds.", field="since")
    seconds = float(found[1]) * SECONDS[found[2]]
    if found[2] is None and seconds > LONGEST_AGO:
        return seconds
    return (time.time() if now is None else now) - seconds


def read_tail(text: str) -> int:
    """The number that `tail=` gives.

    Raises:
        BadInput: it is not 0 to 100000.
    """
    if not text.isdecimal() or len(text) > 6 or int(text) > MOST_LINES:
        raise BadInput(f"tail: expected 0 to {MOST_LINES}.", field="tail")
    return int(text)
