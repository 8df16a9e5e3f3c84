"""The duty that sends webhooks.

A process that has lost its lease unnoticed may repeat a delivery, under the same `webhook-id`; its writes meet newer
revisions.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pilotlight_core.bus import Bus, Lease, Mirror
from pilotlight_core.model.subjects import WEBHOOK_BUCKET
from pilotlight_gateway.leased import while_leased
from pilotlight_gateway.webhooks.budget_events import BudgetFeed
from pilotlight_gateway.webhooks.delivery_sender import DeliverySender
from pilotlight_gateway.webhooks.event_feed import WebhookFeeds
from pilotlight_gateway.webhooks.http_sender import HttpSender


@dataclass(frozen=True, kw_only=True)
class WebhookStatistics:
    """Counts over the webhooks of all tenants."""

    webhooks: int
    pending: int
    """Unfinished deliveries."""
    under_way: int


class WebhookDuty:
    """Sends webhooks while it holds the lease."""

    def __init__(self, bus: Bus, http_sender: HttpSender, *, holder: str) -> None:
        self._bus = bus
        self._http_sender = http_sender
        self._holder = holder
        self._sending: tuple[Mirror, DeliverySender] | None = None

    def statistics(self) -> WebhookStatistics | None:
        """None while another process has the duty."""
        if self._sending is None:
            return None
        webhooks, sender = self._sending
        return WebhookStatistics(webhooks=len(webhooks), pending=sender.pending, under_way=sender.under_way)

    async def run(self) -> None:
        """Run until cancelled."""
        await while_leased(self._bus, self._bus.lease("duty.webhooks", self._holder), self._send)

    async def _send(self, _lease: Lease) -> None:
        try:
            async with self._bus.mirror(WEBHOOK_BUCKET) as webhooks, asyncio.TaskGroup() as group:
                sender = DeliverySender(self._bus, self._http_sender, webhooks)
                self._sending = webhooks, sender
                group.create_task(sender.run())
                group.create_task(WebhookFeeds(self._bus, webhooks, sender).run())
                group.create_task(BudgetFeed(self._bus, webhooks, sender).run())
        finally:
            self._sending = None
