"""Where webhooks and deliveries are kept: one contract, the fake and the real one."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import pytest
from msgspec import structs

from pilotlight_core.bus import Bus
from pilotlight_core.model.api.webhook_api import DeliveryRecord, DeliveryState, WebhookRecord
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.ids import token
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks, life_of
from pilotlight_gateway.webhooks.webhook_events import ping_event
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks, WebhookStore
from tests.gateway.webhooks.makers import webhook_of

T = TypeVar("T")


@pytest.fixture(params=["memory", "bus"])
def store(request: pytest.FixtureRequest, bus: Bus) -> WebhookStore:
    return MemoryWebhooks() if request.param == "memory" else BusWebhooks(bus)


@pytest.fixture
def tenant() -> str:
    return f"t{token(8)}"


def replaced_by(record: T, _: T | None) -> T:
    """Whatever is there."""
    return record


async def test_webhooks_are_found_by_their_tenant(store: WebhookStore, tenant: str) -> None:
    """Oldest first; another tenant has none of them."""
    records = [webhook_of(tenant, created_at=float(number)) for number in range(3)]
    for record in records:
        await store.change_webhook(tenant, record.id, partial(replaced_by, record))

    assert await store.webhooks(tenant) == records
    assert await store.webhook(tenant, records[1].id) == records[1]
    assert await store.webhook(f"{tenant}x", records[1].id) is None
    assert await store.webhooks(f"{tenant}x") == []


async def test_webhooks_change_and_go(store: WebhookStore, tenant: str) -> None:
    """By functions of what is there, which may refuse."""
    record = webhook_of(tenant)
    await store.change_webhook(tenant, record.id, lambda present: present or record)

    def disabled(present: WebhookRecord | None) -> WebhookRecord:
        assert present is not None
        return structs.replace(present, disabled="so")

    def refuse(_: WebhookRecord | None) -> WebhookRecord:
        raise Conflict("no")

    assert await store.change_webhook(tenant, record.id, disabled) == structs.replace(record, disabled="so")
    with pytest.raises(Conflict):
        await store.change_webhook(tenant, record.id, refuse)
    assert await store.change_webhook(tenant, record.id, lambda _: None) is None
    assert await store.webhook(tenant, record.id) is None
    assert await store.change_webhook(tenant, record.id, lambda present: present or record) == record


async def test_deliveries_are_found_by_their_webhook(store: WebhookStore, tenant: str) -> None:
    """Each once, as last written; what is over too."""
    first, second = (ping_event(tenant, "wh_a", float(number)) for number in range(2))
    other = ping_event(tenant, "wh_b", 0.0)
    for record in (first, second, other):
        await store.change_delivery(tenant, record.webhook, record.id, partial(replaced_by, record))

    def over(present: DeliveryRecord | None) -> DeliveryRecord:
        assert present is not None
        return structs.replace(present, state=DeliveryState.DELIVERED)

    done = await store.change_delivery(tenant, "wh_a", first.id, over)

    assert await store.deliveries(tenant, "wh_a") == [second, done]
    assert await store.deliveries(tenant, "wh_b") == [other]
    assert await store.deliveries(tenant, "wh_") == []


def test_what_waits_is_kept_until_it_is_over() -> None:
    """What is over is kept for three days."""
    record = ping_event("acme", "wh_a", 0.0)

    assert life_of(record) is None
    assert life_of(structs.replace(record, state=DeliveryState.FAILED)) == 3 * 86_400.0
