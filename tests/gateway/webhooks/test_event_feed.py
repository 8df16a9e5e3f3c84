"""Webhooks find what ended in the stream of their tenant's jobs: on a real bus, from where they stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from msgspec import structs

from pilotlight_core.bus import Bus, WrongRevision
from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookEvent, WebhookRecord
from pilotlight_core.model.ids import token
from pilotlight_core.model.records.jobs import JobState
from pilotlight_core.model.subjects import DELIVERY_BUCKET, JOB_BUCKET, WEBHOOK_BUCKET
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks
from pilotlight_gateway.webhooks.delivery_sender import DeliverySender
from pilotlight_gateway.webhooks.event_feed import KEEP_EVERY, WebhookFeeds, _Cursor
from pilotlight_gateway.webhooks.http_sender_fake import FakeHttpSender
from tests.builders.jobs import dead_job, job
from tests.gateway.webhooks.makers import webhook_of
from tests.waiting import until_found


class Site:
    """A tenant with jobs, and whoever reads them for its webhooks."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.store = BusWebhooks(bus)
        self.tenant = f"t{token(8)}"

    async def webhook(self, **more: object) -> WebhookRecord:
        record = webhook_of(self.tenant, **{"after": await self.store.horizon(), **more})
        await self.store.change_webhook(self.tenant, record.id, lambda _: record)
        return record

    async def end_job(self, *, state: JobState = JobState.FAILED) -> str:
        """A job that has ended; its id."""
        name = f"call_local_1_{token()}"
        record = dead_job(id=name, tenant=self.tenant) if state is JobState.FAILED else job(id=name, state=state)
        record = structs.replace(record, tenant=self.tenant)
        await self.bus.kv(JOB_BUCKET).put(f"{self.tenant}.{name}", msgspec.msgpack.encode(record))
        return name

    async def deliveries(self, webhook: WebhookRecord, count: int) -> list[DeliveryRecord]:
        """Those of a webhook, once they are so many."""

        async def enough() -> list[DeliveryRecord] | None:
            found = await self.store.deliveries(self.tenant, webhook.id)
            return found if len(found) >= count else None

        return await until_found(enough)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Readers for all webhooks, and nobody who sends, for as long as the block lasts."""
        async with self.bus.mirror(WEBHOOK_BUCKET) as webhooks:
            sender = DeliverySender(self.bus, FakeHttpSender(), webhooks)
            task = asyncio.ensure_future(WebhookFeeds(self.bus, webhooks, sender).run())
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait([task])


@pytest.fixture
def site(bus: Bus) -> Site:
    return Site(bus)


async def test_what_ends_becomes_a_delivery_of_each_webhook_that_listens(site: Site) -> None:
    """Whether it ended before somebody read, or while; not what ended before the webhook was made."""
    await site.end_job()
    failed, succeeded = await site.webhook(), await site.webhook(events=(WebhookEvent.SUCCEEDED,))
    first = await site.end_job()
    async with site.reading():
        await site.deliveries(failed, 1)
        second = await site.end_job()
        third = await site.end_job(state=JobState.SUCCEEDED)
        found = await site.deliveries(failed, 3)
        (only,) = await site.deliveries(succeeded, 1)

    assert [one.about for one in found] == [first, second, third]
    assert only.about == third


async def test_a_reader_goes_on_where_the_last_one_stopped(site: Site) -> None:
    """What is read twice meets the delivery that it made before."""
    webhook = await site.webhook()
    first = await site.end_job()
    async with site.reading():
        await site.deliveries(webhook, 1)
    second = await site.end_job()
    async with site.reading():
        found = await site.deliveries(webhook, 2)

    assert [one.about for one in found] == [first, second]


async def test_a_webhook_that_is_made_or_changed_is_read_for_at_once(site: Site) -> None:
    """Enabled again it is read for from then on."""
    async with site.reading():
        webhook = await site.webhook(disabled="so")
        await site.end_job()
        horizon = await site.store.horizon()
        enabled = structs.replace(webhook, disabled="", after=horizon)
        await site.store.change_webhook(site.tenant, webhook.id, lambda _: enabled)
        after = await site.end_job()
        (only,) = await site.deliveries(webhook, 1)

    assert only.about == after


async def test_what_cannot_be_read_is_passed(site: Site) -> None:
    """A record of a version to come, and a job that is forgotten."""
    webhook = await site.webhook()
    kv = site.bus.kv(JOB_BUCKET)
    await kv.put(f"{site.tenant}.call_odd", b"\xc1")
    await kv.delete(f"{site.tenant}.call_odd")
    name = await site.end_job()
    async with site.reading():
        (only,) = await site.deliveries(webhook, 1)

    assert only.about == name


async def test_a_place_is_written_now_and_then(bus: Bus) -> None:
    """Not at every move; two readers of one webhook find each other out."""
    now = [0.0]
    kv, key = bus.kv(DELIVERY_BUCKET), f"t{token(8)}.wh_a"
    one, two = _Cursor(kv, key, lambda: now[0]), _Cursor(kv, key, lambda: now[0])
    assert (await one.read(), await two.read()) == (0, 0)
    await one.move(5)
    await one.move(6)
    assert await _Cursor(kv, key, lambda: now[0]).read() == 5
    now[0] += KEEP_EVERY
    await one.move(7)

    assert await _Cursor(kv, key, lambda: now[0]).read() == 7
    with pytest.raises(WrongRevision):
        await two.move(9)
