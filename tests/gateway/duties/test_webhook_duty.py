"""The duty on a real bus: what ended is told, once its receiver says so, whoever sends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from standardwebhooks import Webhook

from pilotlight_core.bus import Bus, StoreRefused
from pilotlight_core.model.api.webhook_api import (
    WEBHOOKS_PER_TENANT,
    DeliveryRecord,
    DeliveryState,
    WebhookChange,
    WebhookRecord,
    WebhookRequest,
)
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.ids import token
from pilotlight_core.model.money.budgets import HomeTranches, Tranche
from pilotlight_core.model.subjects import BUDGET_BUCKET, DELIVERY_BUCKET, JOB_BUCKET, WEBHOOK_BUCKET
from pilotlight_gateway.duties.webhook_duty import WebhookDuty
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks
from pilotlight_gateway.webhooks.delivery_attempts import resent
from pilotlight_gateway.webhooks.delivery_sender import FINISHED_KEPT, DeliverySender
from pilotlight_gateway.webhooks.http_sender_fake import FakeHttpSender
from pilotlight_gateway.webhooks.webhook_events import delivery_id
from pilotlight_gateway.webhooks.webhook_service import change_webhook, create_webhook, delete_webhook, ping
from tests.waiting import until_found


class Tenant:
    """Somebody with webhooks and jobs."""

    def __init__(self, bus: Bus) -> None:
        self.name = f"t{token(8)}"
        self.store = BusWebhooks(bus)
        self._jobs = bus.kv(JOB_BUCKET)

    async def webhook(self, **more: Any) -> tuple[str, str, str]:
        """A webhook's id, address and secret."""
        url = f"https://{token(8)}.example.com/"
        made = await create_webhook(self.store, self.name, WebhookRequest(url=url, **more), time.time(), ())
        return made.id, url, made.secret

    async def job(self, state: str = "succeeded", job: str = "", **more: Any) -> str:
        """A job's record in a state; its id."""
        job = job or f"call_local_1_{token()}"
        record: dict[str, Any] = {"id": job, "tenant": self.name, "ref": "app.fn@v1", "state": state}
        record |= {"created_at": 1.0, "ended_at": 2.0}
        await self._jobs.put(f"{self.name}.{job}", msgspec.msgpack.encode(record | more))
        return job

    async def deliveries(self, webhook: str) -> list[DeliveryRecord]:
        return await self.store.deliveries(self.name, webhook)


@pytest.fixture
def tenant(bus: Bus) -> Tenant:
    return Tenant(bus)


@asynccontextmanager
async def sending(bus: Bus, poster: FakeHttpSender) -> AsyncIterator[None]:
    """The duty, for as long as the block lasts."""
    duty = asyncio.ensure_future(WebhookDuty(bus, poster, holder=token(8)).run())
    try:
        yield
    finally:
        duty.cancel()
        await asyncio.wait([duty])


async def until_state(tenant: Tenant, webhook: str, *states: DeliveryState) -> list[DeliveryRecord]:
    """The deliveries, once they are in these states."""

    async def found() -> list[DeliveryRecord] | None:
        records = await tenant.deliveries(webhook)
        return records if sorted(record.state for record in records) == sorted(states) else None

    return await until_found(found)


async def until_posted(poster: FakeHttpSender, url: str) -> None:
    """Something was sent there."""

    async def posted() -> bool | None:
        return True if poster.to(url) else None

    await until_found(posted)


async def test_the_end_of_a_job_is_told_and_signed(bus: Bus, tenant: Tenant) -> None:
    """What is told says which job, how it ended and where its answer is."""
    id_, url, secret = await tenant.webhook()
    poster = FakeHttpSender()
    async with sending(bus, poster):
        await tenant.job("queued")
        await tenant.job("running")
        error = {"code": "function_raised", "detail": "x" * 5_000}
        job = await tenant.job("failed", attempts=3, reason="raised", error=error, client_id="cid_12345678")
        (record,) = await until_state(tenant, id_, DeliveryState.DELIVERED)

    (posted,) = poster.to(url)
    told = msgspec.json.decode(posted.body)
    assert Webhook(secret).verify(posted.body, dict(posted.headers))
    assert posted.headers["webhook-id"] == record.id
    assert told["type"] == record.event == "job.failed"
    assert told["timestamp"] == "1970-01-01T00:00:02.000Z"
    assert told["data"]["id"] == record.about == job
    assert (told["data"]["state"], told["data"]["attempts"], told["data"]["reason"]) == ("failed", 3, "raised")
    assert told["data"]["error"]["code"] == "function_raised"
    assert told["data"]["url"] == f"/v1/calls/{job}"
    assert len(posted.body) < 20_000


async def test_each_webhook_hears_of_what_it_listens_to(bus: Bus, tenant: Tenant) -> None:
    """And of its own tenant's jobs only."""
    failures, failures_url, _ = await tenant.webhook(events=("job.failed", "job.expired"))
    everything, everything_url, _ = await tenant.webhook()
    stranger = Tenant(bus)
    _, strangers_url, _ = await stranger.webhook()
    poster = FakeHttpSender()
    async with sending(bus, poster):
        for state in ("succeeded", "failed", "cancelled", "expired"):
            await tenant.job(state)
        await until_state(tenant, everything, *[DeliveryState.DELIVERED] * 4)
        await until_state(tenant, failures, *[DeliveryState.DELIVERED] * 2)

    types = sorted(msgspec.json.decode(posted.body)["type"] for posted in poster.to(failures_url))
    assert types == ["job.expired", "job.failed"]
    assert len(poster.to(everything_url)) == 4
    assert not poster.to(strangers_url)


async def test_what_ended_while_nobody_sent_is_told_later_and_once(bus: Bus, tenant: Tenant) -> None:
    """From the moment at which the webhook was made, over as many senders as there were."""
    before = await tenant.job()
    id_, url, _ = await tenant.webhook()
    poster = FakeHttpSender()
    ended = [await tenant.job() for _ in range(5)]
    for _ in range(3):
        async with sending(bus, poster):
            await until_state(tenant, id_, *[DeliveryState.DELIVERED] * len(ended))
        ended.append(await tenant.job())

    told = [msgspec.json.decode(posted.body)["data"]["id"] for posted in poster.to(url)]
    assert sorted(told) == sorted(ended[:-1])
    assert before not in told


async def test_a_job_that_is_driven_again_ends_again(bus: Bus, tenant: Tenant) -> None:
    """Under another id, so that its receiver does not take it for a repetition."""
    id_, url, _ = await tenant.webhook()
    poster = FakeHttpSender()
    async with sending(bus, poster):
        job = await tenant.job("failed")
        await until_state(tenant, id_, DeliveryState.DELIVERED)
        await tenant.job("failed", job, redrives=1)
        await until_state(tenant, id_, DeliveryState.DELIVERED, DeliveryState.DELIVERED)

    first, second = (posted.headers["webhook-id"] for posted in poster.to(url))
    assert first != second


async def test_who_dies_in_the_middle_is_followed_by_another(bus: Bus, tenant: Tenant) -> None:
    """The delivery is sent again, under the same id and with the same body."""
    id_, url, _ = await tenant.webhook()
    poster = FakeHttpSender(held={url: asyncio.Event()})
    await tenant.job()
    async with sending(bus, poster):
        await until_posted(poster, url)
    poster.held.clear()
    async with sending(bus, poster):
        await until_state(tenant, id_, DeliveryState.DELIVERED)

    first, second = poster.to(url)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


async def test_what_fails_waits_for_its_next_attempt(bus: Bus, tenant: Tenant) -> None:
    """The log says what was tried; sent again by hand it goes at once, under its id."""
    id_, url, _ = await tenant.webhook()
    poster = FakeHttpSender(statuses={url: [500]})
    async with sending(bus, poster):
        await tenant.job()

        async def tried() -> DeliveryRecord | None:
            return next((record for record in await tenant.deliveries(id_) if record.attempts), None)

        record = await until_found(tried)
        assert record.state is DeliveryState.PENDING
        assert 5.0 <= record.next_at - record.attempts[0].at <= 5.5 + 1e-6

        async def noticed() -> WebhookRecord | None:
            present = await tenant.store.webhook(tenant.name, id_)
            return present if present and present.failing_since is not None else None

        failing = await until_found(noticed)
        await tenant.store.change_delivery(
            tenant.name, id_, record.id, lambda present: present and resent(present, time.time())
        )
        (record,) = await until_state(tenant, id_, DeliveryState.DELIVERED)

        async def changed() -> WebhookRecord | None:
            present = await tenant.store.webhook(tenant.name, id_)
            return None if present == failing else present

        well = await until_found(changed)

    assert [attempt.status for attempt in record.attempts] == [500, 200]
    assert len({posted.headers["webhook-id"] for posted in poster.to(url)}) == 1
    assert failing.failing_since is not None
    assert well.failing_since is None


async def test_who_says_gone_is_told_nothing_more(bus: Bus, tenant: Tenant) -> None:
    """Its webhook is disabled; enabled again it hears of what ends from then on."""
    id_, url, _ = await tenant.webhook()
    poster = FakeHttpSender(statuses={url: [410]})
    async with sending(bus, poster):
        await tenant.job()
        await until_state(tenant, id_, DeliveryState.FAILED)

        async def disabled() -> WebhookRecord | None:
            present = await tenant.store.webhook(tenant.name, id_)
            return present if present is not None and present.disabled else None

        record = await until_found(disabled)
        assert record.disabled == "it answered 410 Gone"
        await tenant.job()
        await change_webhook(tenant.store, tenant.name, id_, WebhookChange(disabled=False), ())
        heard = await tenant.job()
        await until_state(tenant, id_, DeliveryState.FAILED, DeliveryState.DELIVERED)

    assert msgspec.json.decode(poster.to(url)[-1].body)["data"]["id"] == heard
    assert len(poster.to(url)) == 2


async def test_a_slow_receiver_delays_nobody_else(bus: Bus, tenant: Tenant) -> None:
    """However much waits for it; no more than a few connections are open to it."""
    slow, slow_url, _ = await tenant.webhook()
    quick, quick_url, _ = await tenant.webhook()
    stranger = Tenant(bus)
    strangers, strangers_url, _ = await stranger.webhook()
    poster = FakeHttpSender(held={slow_url: asyncio.Event()})
    async with sending(bus, poster):
        for _ in range(20):
            await tenant.job()
        await stranger.job()
        await until_state(tenant, quick, *[DeliveryState.DELIVERED] * 20)
        await until_state(stranger, strangers, DeliveryState.DELIVERED)
        assert poster.inside[slow_url] == len(poster.to(slow_url)) == 4
        poster.held.pop(slow_url).set()
        await until_state(tenant, slow, *[DeliveryState.DELIVERED] * 20)

    assert len(poster.to(quick_url)) == len(poster.to(slow_url)) == 20
    assert len(poster.to(strangers_url)) == 1


async def test_a_deleted_webhook_is_sent_nothing(bus: Bus, tenant: Tenant) -> None:
    """Neither what waits nor what comes."""
    id_, url, _ = await tenant.webhook()
    witness, _, _ = await tenant.webhook()
    await ping(tenant.store, tenant.name, id_, time.time())
    await delete_webhook(tenant.store, tenant.name, id_)
    poster = FakeHttpSender()
    async with sending(bus, poster):
        await tenant.job()
        await until_state(tenant, witness, DeliveryState.DELIVERED)
        await until_state(tenant, id_)

    assert not poster.to(url)


async def test_the_log_is_bounded(bus: Bus, tenant: Tenant) -> None:
    """The oldest that are over go first."""
    id_, _, _ = await tenant.webhook()
    poster = FakeHttpSender()
    jobs = [await tenant.job() for _ in range(FINISHED_KEPT + 10)]
    async with sending(bus, poster):
        await until_state(tenant, id_, *[DeliveryState.DELIVERED] * FINISHED_KEPT)

    assert len(poster.posted) >= len(jobs)


async def test_what_cannot_be_read_holds_nobody_up(bus: Bus, tenant: Tenant) -> None:
    """A webhook, how far one has read, a delivery: others are told, and what waits for the first is kept."""
    of_later = b"\xc1 of a version to come"
    odd, odd_url, _ = await tenant.webhook()
    waits, _, _ = await tenant.webhook()
    well, _, _ = await tenant.webhook()
    poster = FakeHttpSender()
    job = await tenant.job()
    await ping(tenant.store, tenant.name, odd, time.time())
    await bus.kv(WEBHOOK_BUCKET).put(f"{tenant.name}.{odd}", of_later)
    deliveries = bus.kv(DELIVERY_BUCKET)
    await deliveries.put(f"{tenant.name}.{well}", of_later)
    await deliveries.put(f"{tenant.name}.{waits}.{delivery_id(waits, 'job.succeeded', job)}", of_later)
    async with sending(bus, poster):
        await until_state(tenant, well, DeliveryState.DELIVERED)
        assert [record.state for record in await tenant.deliveries(odd)] == [DeliveryState.PENDING]

    assert not poster.to(odd_url)
    assert [record.id for record in await tenant.store.webhooks(tenant.name)] == [waits, well]


async def test_what_is_kept_of_a_webhook_goes_with_it(bus: Bus, tenant: Tenant) -> None:
    """What was sent, and what waits for tomorrow: who makes webhooks anew again and again fills nothing."""
    id_, _, _ = await tenant.webhook()
    later = DeliveryRecord(
        id=f"msg_{token()}{token(12)}", tenant=tenant.name, webhook=id_, event="job.failed", about="", body=b"{}",
        created_at=time.time(), next_at=time.time() + 86_400.0,
    )  # fmt: skip
    await tenant.store.change_delivery(tenant.name, id_, later.id, lambda _: later)
    poster = FakeHttpSender()
    async with sending(bus, poster):
        await tenant.job()
        await until_state(tenant, id_, DeliveryState.DELIVERED, DeliveryState.PENDING)
        await delete_webhook(tenant.store, tenant.name, id_)
        await until_state(tenant, id_)
    assert len(poster.posted) == 1


class Unwritten(BusWebhooks):
    """What is written is refused at first, as by a bucket that is full."""

    refusals = 2

    async def change_delivery(self, tenant: str, webhook: str, delivery: str, change: Any) -> DeliveryRecord | None:
        if self.refusals:
            self.refusals -= 1
            raise StoreRefused("maximum bytes exceeded")
        return await super().change_delivery(tenant, webhook, delivery, change)


async def test_what_cannot_be_written_down_is_not_sent_again(bus: Bus, tenant: Tenant) -> None:
    """A receiver that failed is left alone for as long as its schedule says, however long the bus refuses."""
    id_, url, _ = await tenant.webhook()
    poster = FakeHttpSender(status=500)
    await ping(tenant.store, tenant.name, id_, time.time())

    async def tried() -> DeliveryRecord | None:
        return next((record for record in await tenant.deliveries(id_) if record.attempts), None)

    async with bus.mirror(WEBHOOK_BUCKET) as webhooks:
        sending = asyncio.ensure_future(DeliverySender(bus, poster, webhooks, store=Unwritten(bus)).run())
        record = await until_found(tried)
        sending.cancel()
        await asyncio.wait([sending])

    assert len(poster.to(url)) == len(record.attempts) == 1


async def test_webhooks_that_are_made_at_the_same_time_are_no_more_than_there_may_be(
    bus: Bus,
    tenant: Tenant,
) -> None:
    """Each request saw room for its own."""
    made = await asyncio.gather(*(tenant.webhook() for _ in range(3 * WEBHOOKS_PER_TENANT)), return_exceptions=True)
    refused = [one for one in made if isinstance(one, Conflict)]

    # As many as there may be, or a few more: who is first at the clock may be last at the store.
    assert len(await tenant.store.webhooks(tenant.name)) == len(made) - len(refused) < 2 * WEBHOOKS_PER_TENANT


async def test_a_threshold_of_a_budget_is_told_and_signed_once(bus: Bus, tenant: Tenant) -> None:
    """However often its home writes its record, and whoever has the duty."""
    id_, url, secret = await tenant.webhook(events=("budget.threshold",))
    poster, now = FakeHttpSender(), time.time() + 1.0
    reached = Tranche(begins=0, amount=100, spent=81, told=(50, 80), told_at=(now, now))
    for spent in (81, 82):
        record = HomeTranches(tenant=tenant.name, tranches={"month": msgspec.structs.replace(reached, spent=spent)})
        async with sending(bus, poster):
            await bus.kv(BUDGET_BUCKET).put(f"home.{tenant.name}", msgspec.msgpack.encode(record))
            await until_state(tenant, id_, DeliveryState.DELIVERED, DeliveryState.DELIVERED)

    told = [Webhook(secret).verify(posted.body, dict(posted.headers)) for posted in poster.to(url)]
    assert sorted(one["data"]["percent"] for one in told) == [50, 80]
    assert {one["type"] for one in told} == {"budget.threshold"}
