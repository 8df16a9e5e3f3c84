"""What a tenant does with its webhooks, over a store in memory."""

from __future__ import annotations

import pytest
from msgspec import structs

from pilotlight_core.model.api.webhook_api import (
    WEBHOOKS_PER_TENANT,
    DeliveryState,
    NewWebhook,
    WebhookChange,
    WebhookEvent,
    WebhookRecord,
    WebhookRequest,
    WebhookRotation,
)
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_gateway.webhooks import webhook_service as service
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks

URL = "https://hooks.example.com/"
UNKNOWN = "wh_00000000000000000009"


async def made(store: MemoryWebhooks, *, at: float = 100.0, tenant: str = "acme") -> NewWebhook:
    return await service.create_webhook(store, tenant, WebhookRequest(url=URL), at, ())


async def test_a_new_webhook_hears_of_what_ends_from_now_on() -> None:
    """Its secret is shown once."""
    store = MemoryWebhooks(last=17)
    webhook = await made(store)

    (record,) = store.webhook_records.values()
    assert (record.after, record.created_at) == (17, 100.0)
    assert webhook.secret == record.secrets[0].value
    (listed,) = await service.list_webhooks(store, "acme")
    assert listed.id == webhook.id
    assert not hasattr(listed, "secret")
    assert await service.list_webhooks(store, "rival") == []


async def test_a_tenant_has_so_many_at_most() -> None:
    """Another one's do not count, and a refused one is not kept."""
    store = MemoryWebhooks()
    for _ in range(WEBHOOKS_PER_TENANT):
        await made(store)
    with pytest.raises(Conflict, match="delete one first"):
        await made(store)
    await made(store, tenant="rival")

    assert len(await store.webhooks("acme")) == WEBHOOKS_PER_TENANT


class LaggingWebhooks(MemoryWebhooks):
    """Lists nothing of what was written, as a server that is behind."""

    async def webhooks(self, tenant: str) -> list[WebhookRecord]:
        assert tenant
        return []


async def test_a_list_that_is_behind_refuses_nobody() -> None:
    """What was just stored need not be listed yet."""
    store = LaggingWebhooks()
    webhook = await made(store)

    assert ("acme", webhook.id) in store.webhook_records


@pytest.mark.parametrize(
    "url", ["http://hooks.example.com/", "https://127.0.0.1/", "https://user:pw@hooks.example.com/"]
)
async def test_an_address_that_nothing_would_be_sent_to_is_refused(url: str) -> None:
    """When the webhook is made, and when it is changed."""
    store = MemoryWebhooks()
    with pytest.raises(BadInput):
        await service.create_webhook(store, "acme", WebhookRequest(url=url), 100.0, ())
    webhook = await made(store)
    with pytest.raises(BadInput):
        await service.change_webhook(store, "acme", webhook.id, WebhookChange(url=url), ())

    assert store.webhook_records["acme", webhook.id].url == URL


async def test_a_change_gives_what_it_names_and_leaves_the_rest() -> None:
    """Events once each."""
    store = MemoryWebhooks()
    webhook = await made(store)
    change = WebhookChange(label="new", events=(WebhookEvent.FAILED, WebhookEvent.FAILED))
    shown = await service.change_webhook(store, "acme", webhook.id, change, ())

    assert (shown.label, shown.events, shown.url) == ("new", (WebhookEvent.FAILED,), URL)


async def test_one_that_is_enabled_again_hears_of_what_ends_from_then_on() -> None:
    """And has not failed yet. Disabling what is disabled keeps the reason."""
    store = MemoryWebhooks()
    webhook = await made(store)
    key = ("acme", webhook.id)
    store.webhook_records[key] = structs.replace(store.webhook_records[key], disabled="gone", failing_since=5.0)
    again = await service.change_webhook(store, "acme", webhook.id, WebhookChange(disabled=True), ())
    assert (again.disabled, again.disabled_because) == (True, "gone")

    store.last = 30
    enabled = await service.change_webhook(store, "acme", webhook.id, WebhookChange(disabled=False), ())
    assert not enabled.disabled
    assert (store.webhook_records[key].after, store.webhook_records[key].failing_since) == (30, None)


async def test_a_rotated_secret_signs_beside_its_successor() -> None:
    """For as long as was asked for."""
    store = MemoryWebhooks()
    webhook = await made(store)
    rotated = await service.rotate_secret(store, "acme", webhook.id, WebhookRotation(overlap_s=60.0), 200.0)

    assert rotated.secret != webhook.secret
    assert rotated.replaced_until == 260.0
    secrets = store.webhook_records["acme", webhook.id].secrets
    assert [secret.value for secret in secrets] == [rotated.secret, webhook.secret]


async def test_pings_wait_in_bounded_number() -> None:
    """A disabled webhook is sent none."""
    store = MemoryWebhooks()
    webhook = await made(store)
    for number in range(service.PINGS_PENDING):
        ping = await service.ping(store, "acme", webhook.id, float(number))
        assert ping.event == WebhookEvent.PING
    with pytest.raises(Conflict, match="Enough pings"):
        await service.ping(store, "acme", webhook.id, 99.0)
    listed = await service.list_deliveries(store, "acme", webhook.id, 3)
    assert [one.created_at for one in listed] == [7.0, 6.0, 5.0]

    await service.change_webhook(store, "acme", webhook.id, WebhookChange(disabled=True), ())
    with pytest.raises(Conflict, match="its owner disabled it"):
        await service.ping(store, "acme", webhook.id, 99.0)


async def test_a_delivery_is_sent_again_under_its_id() -> None:
    """Whatever became of it."""
    store = MemoryWebhooks()
    webhook = await made(store)
    ping = await service.ping(store, "acme", webhook.id, 1.0)
    key = ("acme", webhook.id, ping.id)
    over = structs.replace(store.delivery_records[key], state=DeliveryState.DELIVERED)
    store.delivery_records[key] = over
    again = await service.resend(store, "acme", webhook.id, ping.id, 50.0)

    assert (again.id, again.state, again.next_at) == (ping.id, DeliveryState.PENDING, 50.0)
    for unknown in ("msg_" + "0" * 32, "no id"):
        with pytest.raises(NotFound, match="There is no delivery"):
            await service.resend(store, "acme", webhook.id, unknown, 50.0)


@pytest.mark.parametrize("name", [UNKNOWN, "no id"])
async def test_another_tenants_webhook_is_not_there(name: str) -> None:
    """Nor is one of no form of an id."""
    store = MemoryWebhooks()
    webhook = await made(store)
    for tenant, wanted in (("rival", webhook.id), ("acme", name)):
        with pytest.raises(NotFound, match="There is no webhook"):
            await service.own_webhook(store, tenant, wanted)
        with pytest.raises(NotFound):
            await service.change_webhook(store, tenant, wanted, WebhookChange(label="x"), ())
        with pytest.raises(NotFound):
            await service.delete_webhook(store, tenant, wanted)
        with pytest.raises(NotFound):
            await service.rotate_secret(store, tenant, wanted, WebhookRotation(), 1.0)
    await service.delete_webhook(store, "acme", webhook.id)

    assert store.webhook_records == {}
