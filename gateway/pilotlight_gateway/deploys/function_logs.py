"""Reads what functions print, from the LOGS stream."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from pilotlight_core.bus import Bus, DecodedMessage
from pilotlight_core.bus.reader import read_last
from pilotlight_core.host.node_faults import NodeFaults
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.node_reports.node_checks import NodeFault
from pilotlight_gateway.deploys.line_owners import LineOwner, LineOwners

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
    """Lines since a unix second, of one call or of all: the last `tail` of them, and new ones if `follow`."""

    tenant: str
    app: str
    function: str = "*"
    call_id: str = ""
    """Empty: of all, and of none."""
    since: float = 0.0
    tail: int | None = None
    follow: bool = False


class LogSource(Protocol):
    """Yields batches of lines in stored order."""

    def batches(self, query: LogQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]: ...


@dataclass(frozen=True, kw_only=True)
class BusLogs:
    """A `LogSource` over the bus: the lines that nodes write of functions which they run, and no others."""

    bus: Bus
    region: str
    owners: LineOwners
    faults: NodeFaults

    async def batches(self, query: LogQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:
        names = query.tenant, query.app, query.function
        before = subjects.logs_before_nodes(self.region, *names)  # nothing is added there
        for subject, follows in ((before, False), (subjects.logs(self.region, "*", *names), follow)):
            found = self.bus.read_stream(subjects.LOGS_STREAM, subject, start=start, follow=follows)
            async with aclosing(found) as stored:
                async for batch in stored:
                    if (kept := await self._believed(batch)) is not None:
                        yield kept

    async def _believed(self, batch: DecodedMessage) -> DecodedMessage | None:
        """The batch with the lines that its node may write; None: there is none."""
        node, message = subjects.node_of(batch.subject), batch.message
        if not node or not isinstance(message, LogBatch):
            return batch
        lines = believed_lines(batch.subject, message, await self.owners.find({one.container for one in message.lines}))
        if len(lines) < len(message.lines):
            self.faults.note(node, f"log lines of {batch.subject}", NodeFault.NOT_BOUND, time.monotonic())
        return msgspec.structs.replace(batch, message=LogBatch(lines=lines)) if lines else None


def believed_lines(subject: str, batch: LogBatch, owners: Mapping[str, LineOwner]) -> tuple[LogLine, ...]:
    """The lines of containers that were bound on the subject's node for its function."""
    _, _, node, tenant, app, function = subject.split(".")
    owner = LineOwner(node, f"{tenant}:{app}.{function}")
    return tuple(line for line in batch.lines if owners.get(line.container) == owner)


@dataclass(kw_only=True)
class MemoryLogs:
    """An in-memory `LogSource`, which ends after `kept` even when followed."""

    kept: list[DecodedMessage] = field(default_factory=list)

    async def batches(self, query: LogQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:  # noqa: ARG002
        first = start if isinstance(start, int) else 0
        for batch in self.kept:
            tenant, app, function = batch.subject.split(".")[-3:]
            if batch.seq >= first and (tenant, app) == (query.tenant, query.app) and query.function in ("*", function):
                yield batch


def read_lines(source: LogSource, query: LogQuery) -> AsyncGenerator[FunctionLine, None]:
    """The lines of `query`, oldest first; with `follow` the iterator does not end."""

    async def read(start: str | int, *, follow: bool) -> AsyncGenerator[tuple[int, FunctionLine | None], None]:
        async with aclosing(source.batches(query, start, follow=follow)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                for line in batch.message.lines if isinstance(batch.message, LogBatch) else ():
                    if line.at >= query.since and query.call_id in ("", line.call_id):
                        yield batch.seq, _named(line, batch.subject)

    return read_last(read, "all", query.tail, follow=query.follow)


def _named(line: LogLine, subject: str) -> FunctionLine:
    return FunctionLine(
        at=line.at,
        stream=line.stream,
        text=line.text,
        container=line.container,
        function=subject.rpartition(".")[2],
        call_id=line.call_id,
    )


SINCE_SCHEMA = {"type": "string", "pattern": "^[0-9]{1,12}([.][0-9]{1,9})?[smhd]?$"}
"""Of what `read_since` reads."""


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
