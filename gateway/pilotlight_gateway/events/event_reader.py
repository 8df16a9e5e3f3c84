"""Reads the platform's events for those who may see them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.bus import Bus, DecodedMessage
from pilotlight_core.bus.reader import read_last
from pilotlight_core.model import subjects
from pilotlight_core.model.api.seeing.event_api import ShownEvent
from pilotlight_core.model.messages.logs import EventKind, PlatformEvent

EVERYBODY = "*"
LATE_S = 60.0
"""An event may be stored so much before the instant that it names, by another's clock."""
KINDS = frozenset(map(str, EventKind))
FAMILIES = frozenset(kind.partition(".")[0] for kind in EventKind)


@dataclass(frozen=True, kw_only=True)
class EventQuery:
    """Events of a tenant (`EVERYBODY`: all, and the platform's own), after a sequence number."""

    tenant: str
    is_operator: bool = False
    after: int = 0
    since: float = 0.0
    kind: str = ""
    """The beginning of a kind, such as "breaker"; "": all."""
    function: str = ""
    tail: int | None = None
    follow: bool = False

    def asks_for(self, event: PlatformEvent) -> bool:
        return (
            event.at >= self.since
            and event.kind.startswith(self.kind)
            and self.function in ("", event.function, event.function.partition(":")[2])
        )


class PlatformEventSource(Protocol):
    """Where events are kept."""

    def stored(self, query: EventQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:
        """At least those that are asked for, from a sequence number (or "all") on; with `follow` without end."""
        ...


@dataclass
class BusEvents:
    """An `PlatformEventSource` over the bus."""

    bus: Bus
    region: str

    async def stored(self, query: EventQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:
        """The server chooses by tenant, kind and time: what is read is little more than what is asked for."""
        subject = subjects.platform_events_of(self.region, query.tenant, kind_subject(query.kind))
        if start == "all" and query.since > LATE_S:
            page = await self.bus.jetstream.page_since(
                subjects.EVENTS_STREAM, subject, query.since - LATE_S, messages=1
            )
            start = page.records[0].seq if page.records else "new"
        found = self.bus.read_stream(subjects.EVENTS_STREAM, subject, start=start, follow=follow)
        async with aclosing(found) as kept:
            async for each in kept:
                yield each


@dataclass(kw_only=True)
class MemoryEvents:
    """The fake for tests; it ends after `kept` even when followed."""

    kept: list[DecodedMessage] = field(default_factory=list)

    async def stored(self, query: EventQuery, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:  # noqa: ARG002
        first = start if isinstance(start, int) else 0
        for each in self.kept:
            if each.seq >= first and query.tenant in (EVERYBODY, getattr(each.message, "tenant", "")):
                yield each


def kind_subject(kind: str) -> str:
    """What the server can choose by of the beginning of a kind; "": nothing, and whoever reads chooses."""
    family = kind.removesuffix(".")
    return family if family in FAMILIES or kind in KINDS else ""


def read_events(source: PlatformEventSource, query: EventQuery) -> AsyncGenerator[ShownEvent, None]:
    """The events that are asked for, the oldest first; with `follow` the iterator does not end."""

    async def read(start: str | int, *, follow: bool) -> AsyncGenerator[tuple[int, ShownEvent | None], None]:
        async with aclosing(source.stored(query, start, follow=follow)) as stored:  # type: ignore[type-var]
            async for each in stored:
                event = each.message
                is_asked = isinstance(event, PlatformEvent) and query.asks_for(event)
                yield each.seq, shown(each.seq, event, is_operator=query.is_operator) if is_asked else None

    return read_last(read, query.after + 1 if query.after else "all", query.tail, follow=query.follow)


async def last_levels(source: PlatformEventSource, tenant: str) -> dict[tuple[str, str], bool]:
    """Of a tenant's functions and their levels: whether the last event says that they are broken.

    Raises:
        BusError: they cannot be read now.
    """
    found: dict[tuple[str, str], bool] = {}
    query = EventQuery(tenant=tenant, kind=EventKind.SLO_BROKEN.partition(".")[0])
    async for event in read_events(source, query):
        found[event.function, str(event.facts.get("level", ""))] = event.kind == EventKind.SLO_BROKEN
    return found


def shown(seq: int, event: PlatformEvent, *, is_operator: bool) -> ShownEvent:
    """An event as it is answered."""
    facts = event.facts | event.operator if is_operator else event.facts
    return ShownEvent(
        id=seq, at=event.at, kind=event.kind, tenant=event.tenant, function=event.function, says=event.says,
        facts=facts,
    )  # fmt: skip
