"""Notices of Azure: the scheduled events of the machine's group, of which those about this machine count.

`Preempt` ends a spot machine, `Terminate` one of a scale set that is told of its end; an event that is in the document
no more has been withdrawn, or is over. The first question switches scheduled events on, which takes up to two minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.metadata_client import WITHIN_S, MetadataClient, unexpected
from pilotlight_runtime.node.notices.notice_port import NoticesUnread
from pilotlight_runtime.node.notices.provider_times import unix_of_mail

AZURE_URL = "http://169.254.169.254"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
FIRST_WITHIN_S = 130.0
ENDS = ("Preempt", "Terminate")
NOTICE_S = 30.0
"""Of an event that names no time: it has begun."""
MOST_NAME = 256
HEADERS = {"Metadata": "true"}


class ScheduledEvent(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """What is read of an event."""

    event_type: str
    resources: tuple[str, ...] = ()
    not_before: str | None = None
    description: str | None = None


class ScheduledEvents(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    events: tuple[ScheduledEvent, ...]


class AzureNotices:
    """A `NoticeSource`."""

    pause_s = 2.0
    revokes = True

    def __init__(
        self, url: str = AZURE_URL, *, first_within_s: float = FIRST_WITHIN_S, wall: Callable[[], float] = time.time
    ) -> None:
        self._client = MetadataClient(url)
        self._wall = wall
        self._within_s = first_within_s
        self._machine = ""
        self._begun_at = 0.0
        """When an event without a time was first seen."""

    async def poll(self) -> NodeNotice | None:
        if not self._machine:
            self._machine = await self._name()
        answer = await self._client.ask(EVENTS, HEADERS, within_s=self._within_s)
        if answer.status != 200:
            raise unexpected(EVENTS, answer)
        self._within_s = WITHIN_S
        try:
            document = msgspec.json.decode(answer.text, type=ScheduledEvents)
        except (msgspec.DecodeError, RecursionError):
            raise NoticesUnread(f"GET {EVENTS}: no document of scheduled events: {answer.text!r:.60}") from None
        ours = [each for each in document.events if each.event_type in ENDS and self._machine in each.resources]
        at = self._wall()
        deadlines = [self._deadline(each, at) for each in ours]
        if not deadlines:
            self._begun_at = 0.0
            return None
        event = ours[deadlines.index(min(deadlines))]
        return NodeNotice(kind=NoticeKind.PREEMPT, deadline=min(deadlines), reason=f"Azure: {event.event_type}")

    async def aclose(self) -> None:
        await self._client.aclose()

    def _deadline(self, event: ScheduledEvent, at: float) -> float:
        if event.not_before:
            return unix_of_mail(event.not_before, at)
        self._begun_at = self._begun_at or at
        return self._begun_at + NOTICE_S

    async def _name(self) -> str:
        answer = await self._client.ask(NAME, HEADERS)
        name = answer.text.strip()
        if answer.status != 200 or not 0 < len(name) <= MOST_NAME:
            raise unexpected(NAME, answer)
        return name
