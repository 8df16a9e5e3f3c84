"""Thresholds of budgets become deliveries, each once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from pilotlight_core.bus import Bus, BusTimeout
from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookEvent, WebhookRecord
from pilotlight_core.model.ids import token
from pilotlight_core.model.money.budgets import HomeTranches, Tranche
from pilotlight_core.model.subjects import BUDGET_BUCKET, WEBHOOK_BUCKET
from pilotlight_gateway.webhooks.budget_events import TOLD_WITHIN_S, BudgetFeed, threshold_events
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks
from pilotlight_gateway.webhooks.delivery_schedule import EndpointKey
from pilotlight_gateway.webhooks.delivery_sender import PENDING_AT_MOST, DeliverySender
from pilotlight_gateway.webhooks.http_sender_fake import FakeHttpSender
from pilotlight_gateway.webhooks.webhook_port import ChangeDelivery
from tests.gateway.webhooks.makers import webhook_of
from tests.waiting import until, until_found

NOW = 1_790_000_000.0
MONTH = Tranche(
    begins=1_788_220_800,
    amount=250 * 10**9,
    spent=203 * 10**9,
    told=(50, 80),
    told_at=(NOW - 2 * TOLD_WITHIN_S, NOW - 5),
)
RECORD = HomeTranches(tenant="acme", tranches={"month": MONTH})


def test_each_threshold_is_one_event() -> None:
    """Of those reached since the webhook is there; told again, it has the same id."""
    wants = webhook_of("acme", events=(WebhookEvent.THRESHOLD,))
    (event,) = threshold_events(RECORD, wants, NOW)
    (again,) = threshold_events(RECORD, wants, NOW + 60)
    body = msgspec.json.decode(event.body)
    assert (event.id, event.about, event.body) == (again.id, "month@1788220800:80", again.body)
    assert (body["type"], body["data"]["percent"], body["data"]["spent_usd"]) == ("budget.threshold", 80, "203")


def test_who_does_not_want_it_gets_none() -> None:
    """Nor who was made later, nor who is disabled."""
    jobs, late = webhook_of("acme"), webhook_of("acme", events=(WebhookEvent.THRESHOLD,), created_at=NOW)
    off = webhook_of("acme", events=(WebhookEvent.THRESHOLD,), disabled="its owner")
    assert [list(threshold_events(RECORD, one, NOW)) for one in (jobs, late, off)] == [[], [], []]


class Slow(BusWebhooks):
    """A store whose first write waits until it is let go, and may be lost then."""

    def __init__(self, bus: Bus, *, loses: bool) -> None:
        super().__init__(bus)
        self.loses = loses
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def change_delivery(
        self,
        tenant: str,
        webhook: str,
        id: str,  # noqa: A002
        change: ChangeDelivery,
    ) -> DeliveryRecord | None:
        if not self.entered.is_set():
            self.entered.set()
            await self.go.wait()
            if self.loses:
                raise BusTimeout("lost")
        return await super().change_delivery(tenant, webhook, id, change)


class Site:
    """Tenants whose budgets are noted on a real bus."""

    def __init__(self, bus: Bus, store: BusWebhooks) -> None:
        self.bus, self.store = bus, store

    async def webhook(self) -> WebhookRecord:
        """Of a new tenant."""
        record = webhook_of(f"t{token(8)}", events=(WebhookEvent.THRESHOLD,))
        await self.store.change_webhook(record.tenant, record.id, lambda _: record)
        return record

    async def note(self, tenant: str, *told: int) -> None:
        tranche = Tranche(begins=0, amount=100, told=told, told_at=(NOW,) * len(told))
        record = HomeTranches(tenant=tenant, tranches={"lifetime": tranche})
        await self.bus.kv(BUDGET_BUCKET).put(f"home.{tenant}", msgspec.msgpack.encode(record))

    async def told(self, webhook: WebhookRecord, count: int) -> set[str]:
        """What a webhook has heard of, once it is so much."""

        async def enough() -> set[str] | None:
            found = await BusWebhooks(self.bus).deliveries(webhook.tenant, webhook.id)
            return {one.about.rpartition(":")[2] for one in found} if len(found) >= count else None

        return await until_found(enough)

    @asynccontextmanager
    async def feeding(self) -> AsyncIterator[DeliverySender]:
        """A feed, and nobody who sends."""
        async with self.bus.mirror(WEBHOOK_BUCKET) as webhooks:
            sender = DeliverySender(self.bus, FakeHttpSender(), webhooks)
            feed = self.bus.spawn(BudgetFeed(self.bus, webhooks, sender, wall=lambda: NOW, store=self.store).run())
            yield sender
            await self.bus.end(feed)


@pytest.mark.parametrize("loses", [False, True])
async def test_what_is_reached_while_another_is_told_is_told_too(bus: Bus, loses: bool) -> None:
    """Also when the bus has lost what was being told."""
    store = Slow(bus, loses=loses)
    site = Site(bus, store)
    webhook = await site.webhook()
    async with site.feeding():
        await site.note(webhook.tenant, 50)
        await store.entered.wait()
        await site.note(webhook.tenant, 50, 80)
        other = await site.webhook()  # the mirror has both by the time it has this
        await site.note(other.tenant, 50)
        await asyncio.sleep(0.2)
        store.go.set()
        assert await site.told(webhook, 2) == {"50", "80"}
        assert await site.told(other, 1) == {"50"}


async def test_a_webhook_without_room_is_in_nobodys_way(bus: Bus) -> None:
    """It hears of its thresholds when it has room."""
    site = Site(bus, BusWebhooks(bus))
    full, other = await site.webhook(), await site.webhook()
    endpoint = EndpointKey(full.tenant, full.id)
    async with site.feeding() as sender:
        for number in range(PENDING_AT_MOST):
            sender._schedule.put(f"{full.tenant}.{full.id}.{number}", endpoint, NOW)
        await site.note(full.tenant, 50)
        await site.note(other.tenant, 50)
        assert await site.told(other, 1) == {"50"}
        assert not await site.store.deliveries(full.tenant, full.id)

        sender._drop(f"{full.tenant}.{full.id}.0")
        assert await site.told(full, 1) == {"50"}
        await until(lambda: not sender.has_room(endpoint))
