"""What happened on the platform."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import msgspec

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.event_stream import read_events
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight_core.model.api.seeing.event_api import EventList, ShownEvent

PATH = "/v1/events"


class PlatformEventsClient:
    """Requests of `/v1/events`."""

    def __init__(self, connection: PlatformConnection, platform: PlatformClient) -> None:
        self._connection = connection
        self._platform = platform

    async def list_events(self, asked: Mapping[str, str]) -> EventList:
        """Return the last events, the oldest first. `asked`: since, after, limit, kind, function, tenant, all."""
        return await self._platform.request("GET", PATH, params=asked, answer_type=EventList)

    async def follow_events(self, asked: Mapping[str, str]) -> AsyncGenerator[ShownEvent, None]:
        """Yield the last events, and then each as it comes, without end."""
        headers = {"Accept": "text/event-stream"}
        # Where nothing happens only comments come: only the far end's closing it is an end.
        async with (
            self._connection.open("GET", PATH, params=asked, headers=headers, timeout=3600.0) as answer,
            aclosing(read_events(answer.aiter_bytes())) as events,
        ):
            async for event in events:
                yield msgspec.json.decode(event.data, type=ShownEvent)
