"""What is due is sent, and what came of it is written down: on a real bus, to receivers that a test scripts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from pilotlight_core.bus import Bus, BusDown
from pilotlight_core.model.api.webhook_api import DeliveryRecord, DeliveryState, WebhookRecord
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import WEBHOOK_BUCKET
from pilotlight_gateway.webhooks import delivery_sender
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks
from pilotlight_gateway.webhooks.delivery_schedule import DeliveryLimits, EndpointKey
from pilotlight_gateway.webhooks.delivery_sender import DeliverySender
from pilotlight_gateway.webhooks.http_sender_fake import FakeHttpSender
from pilotlight_gateway.webhooks.webhook_events import ping_event
from pilotlight_gateway.webhooks.webhook_port import ChangeDelivery
from tests.gateway.webhooks.makers import webhook_of
from tests.waiting import until, until_found

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Site:
    """A tenant's webhook, and whoever sends to it."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.store = BusWebhooks(bus)
        self.tenant = f"t{token(8)}"
        self.url = f"https://{token(8)}.example.com/"
        self.http = FakeHttpSender()

    async def webhook(self, **more: object) -> WebhookRecord:
        record = webhook_of(self.tenant, **{"url": self.url, "created_at": time.time(), **more})
        await self.store.change_webhook(self.tenant, record.id, lambda _: record)
        return record

    async def delivery(self, webhook: str, next_at: float | None = None, traceparent: str = "") -> DeliveryRecord:
        at = time.time()
        record = structs.replace(ping_event(self.tenant, webhook, at), traceparent=traceparent)
        if next_at is not None:
            record = structs.replace(record, next_at=next_at)
        await self.store.change_delivery(self.tenant, webhook, record.id, lambda _: record)
        return record

    async def state(self, record: DeliveryRecord) -> DeliveryRecord | None:
        found = await self.store.deliveries(self.tenant, record.webhook)
        return next((one for one in found if one.id == record.id), None)

    async def until_over(self, record: DeliveryRecord) -> DeliveryRecord:
        async def over() -> DeliveryRecord | None:
            found = await self.state(record)
            return None if found is None or found.state is DeliveryState.PENDING else found

        return await until_found(over)

    @asynccontextmanager
    async def sending(self, store: BusWebhooks | None = None) -> AsyncIterator[DeliverySender]:
        """A sender, for as long as the block lasts."""
        async with self.bus.mirror(WEBHOOK_BUCKET) as webhooks:
            sender = DeliverySender(self.bus, self.http, webhooks, bounds=DeliveryLimits(), store=store or self.store)
            task = asyncio.ensure_future(sender.run())
            try:
                yield sender
            finally:
                task.cancel()
                await asyncio.wait([task])


@pytest.fixture
def site(bus: Bus) -> Site:
    return Site(bus)


async def test_what_waits_in_the_bucket_is_sent_and_written_down(site: Site) -> None:
    """Signed, once, with what the receiver said."""
    webhook = await site.webhook()
    record = await site.delivery(webhook.id, traceparent=TRACE)
    async with site.sending():
        over = await site.until_over(record)

    assert over.state is DeliveryState.DELIVERED
    assert [attempt.status for attempt in over.attempts] == [200]
    (sent,) = site.http.to(site.url)
    assert sent.body == record.body
    assert sent.headers["webhook-id"] == record.id
    assert sent.headers["traceparent"] == TRACE
    assert sent.headers["webhook-signature"].startswith("v1,")


async def test_a_failed_attempt_is_followed_by_another_later(site: Site) -> None:
    """The delivery stays pending; nothing is sent before its time."""
    webhook = await site.webhook()
    site.http.statuses[site.url] = [500]
    record = await site.delivery(webhook.id)

    async def attempted() -> DeliveryRecord | None:
        found = await site.state(record)
        return found if found is not None and found.attempts else None

    async with site.sending() as sender:
        await until(lambda: site.http.to(site.url))
        found = await until_found(attempted)
        await until(lambda: sender.under_way == 0)
        assert sender.pending >= 1

    assert found.state is DeliveryState.PENDING
    assert found.next_at > found.attempts[0].at
    assert len(site.http.to(site.url)) == 1


async def test_a_disabled_webhook_is_sent_nothing(site: Site) -> None:
    """Its delivery is given up, with the reason."""
    webhook = await site.webhook(disabled="its owner disabled it")
    record = await site.delivery(webhook.id)
    async with site.sending():
        over = await site.until_over(record)

    assert over.state is DeliveryState.FAILED
    assert "its owner disabled it" in over.attempts[-1].error
    assert not site.http.to(site.url)


async def test_a_receiver_that_is_gone_disables_its_webhook(site: Site) -> None:
    """It says 410, and is told nothing more."""
    webhook = await site.webhook()
    site.http.statuses[site.url] = [410]
    record = await site.delivery(webhook.id)

    async def disabled() -> bool:
        found = await site.store.webhook(site.tenant, webhook.id)
        return found is not None and bool(found.disabled)

    async with site.sending():
        await site.until_over(record)
        assert await until_found(disabled)

    assert len(site.http.to(site.url)) == 1


async def test_what_could_not_be_written_down_is_written_later(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempt was made: it is not made again because the bus was away."""
    monkeypatch.setattr(delivery_sender, "PAUSE", 0.01)

    class Away(BusWebhooks):
        refused = 0

        async def change_delivery(
            self, tenant: str, webhook: str, delivery: str, change: ChangeDelivery
        ) -> DeliveryRecord | None:
            if self.refused < 2:
                self.refused += 1
                raise BusDown("away")
            return await super().change_delivery(tenant, webhook, delivery, change)

    webhook, away = await site.webhook(), Away(site.bus)
    record = await site.delivery(webhook.id)
    async with site.sending(away):
        over = await site.until_over(record)

    assert over.state is DeliveryState.DELIVERED
    assert away.refused == 2
    assert len(site.http.to(site.url)) == 1


async def test_a_webhook_that_is_full_is_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until one of its deliveries is over; another webhook's room is its own."""
    monkeypatch.setattr(delivery_sender, "PENDING_AT_MOST", 1)
    webhook, other = await site.webhook(), await site.webhook(url=f"https://{token(8)}.example.com/")
    held = site.http.held[site.url] = asyncio.Event()
    async with site.sending() as sender:
        await site.delivery(webhook.id)
        await until(lambda: site.http.to(site.url))
        waiting = asyncio.ensure_future(sender.wait_room(EndpointKey(site.tenant, webhook.id)))
        await sender.wait_room(EndpointKey(site.tenant, other.id))
        assert not waiting.done()

        held.set()
        async with asyncio.timeout(30):
            await waiting


async def test_deliveries_of_a_deleted_webhook_go(site: Site) -> None:
    """What waits for another day, too."""
    webhook = await site.webhook()
    record = await site.delivery(webhook.id, time.time() + 86_400.0)

    async def removed() -> bool:
        return await site.state(record) is None

    async with site.sending() as sender:
        await until(lambda: sender.pending)
        await site.store.change_webhook(site.tenant, webhook.id, lambda _: None)
        assert await until_found(removed)

    assert not site.http.to(site.url)


async def test_one_that_is_well_again_is_noted_although_its_failure_was_not_heard_of_yet(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the sender has noted itself counts, not only what came back to it."""
    webhook = await site.webhook()
    site.http.statuses[site.url] = [500]
    first = await site.delivery(webhook.id)

    async def failing_since() -> float | None:
        present = await site.store.webhook(site.tenant, webhook.id)
        return present.failing_since if present is not None else None

    async def is_well() -> bool:
        return await failing_since() is None

    async with site.bus.mirror(WEBHOOK_BUCKET) as webhooks:
        heard = webhooks.get(f"{site.tenant}.{webhook.id}")
        monkeypatch.setattr(webhooks, "get", lambda _: heard)  # it hears of nothing
        sender = DeliverySender(site.bus, site.http, webhooks, bounds=DeliveryLimits(), store=site.store)
        task = asyncio.ensure_future(sender.run())
        try:
            await until_found(failing_since)
            await site.until_over(await site.delivery(webhook.id))
            assert await until_found(is_well)
        finally:
            task.cancel()
            await asyncio.wait([task])
    assert (await site.state(first)) is not None
