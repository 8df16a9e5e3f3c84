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
from pilotlight_core.model.messages.logs import PlatformEvent

EVERYBODY = "*"


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

    def stored(self, tenant: str, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:
        """Those of a tenant, or of all, from a sequence number (or "all") on; with `follow` without end."""
        ...


@dataclass
class BusEvents:
    """An `PlatformEventSource` over the bus."""

    bus: Bus
    region: str

    async def stored(self, tenant: str, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:
        subject = subjects.platform_events_of(self.region, tenant)
        found = self.bus.read_stream(subjects.EVENTS_STREAM, subject, start=start, follow=follow)
        async with aclosing(found) as kept:
            async for each in kept:
                yield each


@dataclass(kw_only=True)
class MemoryEvents:
    """The fake for tests; it ends after `kept` even when followed."""

    kept: list[DecodedMessage] = field(default_factory=list)

    async def stored(self, tenant: str, start: str | int, *, follow: bool) -> AsyncIterator[DecodedMessage]:  # noqa: ARG002
        first = start if isinstance(start, int) else 0
        for each in self.kept:
            if each.seq >= first and tenant in (EVERYBODY, getattr(each.message, "tenant", "")):
                yield each


def read_events(source: PlatformEventSource, query: EventQuery) -> AsyncGenerator[ShownEvent, None]:
    """The events that are asked for, the oldest first; with `follow` the iterator does not end."""

    async def read(start: str | int, *, follow: bool) -> AsyncGenerator[tuple[int, ShownEvent | None], None]:
        async with aclosing(source.stored(query.tenant, start, follow=follow)) as stored:  # type: ignore[type-var]
            async for each in stored:
                event = each.message
                is_asked = isinstance(event, PlatformEvent) and query.asks_for(event)
                yield each.seq, shown(each.seq, event, is_operator=query.is_operator) if is_asked else None

    return read_last(read, query.after + 1 if query.after else "all", query.tail, follow=query.follow)


def shown(seq: int, event: PlatformEvent, *, is_operator: bool) -> ShownEvent:
    """An event as it is answered."""
    facts = event.facts | event.operator if is_operator else event.facts
    return ShownEvent(
        id=seq, at=event.at, kind=event.kind, tenant=event.tenant, function=event.function, says=event.says,
        facts=facts,
    )  # fmt: skip
