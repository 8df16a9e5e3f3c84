"""The duty that sends webhooks: one process at a time, for as long as it holds the lease.

A holder that lost its lease without knowing may send a delivery once more, under the same `webhook-id`; what it writes
about it meets the revision of whoever came after.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import structlog

from pilotlight_core.bus import Bus, BusError, Lease, Mirror
from pilotlight_core.model.subjects import WEBHOOK_BUCKET
from pilotlight_gateway.webhooks.delivery_sender import DeliverySender
from pilotlight_gateway.webhooks.event_feed import WebhookFeeds
from pilotlight_gateway.webhooks.http_sender import HttpSender

PAUSE = 1.0

log = structlog.get_logger(__name__)


class _StartAgain(Exception):
    """The lease or the connection is not what it was."""


@dataclass(frozen=True, kw_only=True)
class WebhookStatistics:
    """How the webhooks of all tenants are."""

    webhooks: int
    pending: int
    """Deliveries that are not over."""
    under_way: int


class WebhookDuty:
    """Sends webhooks for as long as it runs."""

    def __init__(self, bus: Bus, poster: HttpSender, *, holder: str) -> None:
        self._bus = bus
        self._poster = poster
        self._holder = holder
        self._reconnected = asyncio.Event()
        self._sending: tuple[Mirror, DeliverySender] | None = None

    def statistics(self) -> WebhookStatistics | None:
        """How the webhooks of all tenants are; None: this process has not the duty."""
        if self._sending is None:
            return None
        webhooks, sender = self._sending
        return WebhookStatistics(webhooks=len(webhooks), pending=sender.pending, under_way=sender.under_way)

    async def run(self) -> None:
        """Wait for the lease, send while it lasts, and so on. Ends only by cancellation."""
        async with self._bus.listening(reconnected=self._note_reconnect):
            while True:
                async with self._bus.lease("duty.webhooks", self._holder) as lease:
                    try:
                        await self._send_while(lease)
                    finally:
                        self._sending = None

    async def _note_reconnect(self) -> None:
        self._reconnected.set()

    async def _send_while(self, lease: Lease) -> None:
        while lease.valid(time.monotonic()):
            # After a reconnect the streams may be other ones: everything is read anew.
            self._reconnected.clear()
            try:
                async with self._bus.mirror(WEBHOOK_BUCKET) as webhooks, asyncio.TaskGroup() as group:
                    sender = DeliverySender(self._bus, self._poster, webhooks)
                    self._sending = webhooks, sender
                    group.create_task(sender.run())
                    group.create_task(WebhookFeeds(self._bus, webhooks, sender).run())
                    group.create_task(_when_set(lease.lost))
                    group.create_task(_when_set(self._reconnected))
            except* _StartAgain:
                pass
            except* BusError:
                log.exception("webhooks are not sent now; it is tried again")
                await asyncio.sleep(PAUSE)


async def _when_set(event: asyncio.Event) -> None:
    await event.wait()
    raise _StartAgain
