from __future__ import annotations

from pilotlight_core.bus.client import NatsClient


class Subscription:
    """A subscription to a subject, until it is ended or the bus closes."""

    def __init__(self, client: NatsClient, number: int, subject: str) -> None:
        self._client = client
        self._number = number
        self.subject = subject

    async def unsubscribe(self) -> None:
        await self._client.unsubscribe_raw(self._number)
