"""Creates, changes and shows a tenant's webhooks. Instants are unix seconds.

Functions that take a webhook's `id` raise NotFound if the tenant has no such webhook.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from pilotlight_core.host.outbound.address_policy import Network
from pilotlight_core.model.api.webhook_api import (
    DELIVERY_PATTERN,
    ID_PATTERN,
    WEBHOOKS_PER_TENANT,
    DeliveryInfo,
    DeliveryRecord,
    DeliveryState,
    NewWebhook,
    WebhookChange,
    WebhookEvent,
    WebhookInfo,
    WebhookRecord,
    WebhookRequest,
    WebhookRotation,
)
from pilotlight_core.model.errors import Conflict, NotFound
from pilotlight_core.model.ids import token
from pilotlight_gateway.webhooks.delivery_attempts import resent
from pilotlight_gateway.webhooks.webhook_events import ping_event
from pilotlight_gateway.webhooks.webhook_port import WebhookStore
from pilotlight_gateway.webhooks.webhook_signing import new_secret, rotated
from pilotlight_gateway.webhooks.webhook_urls import check_url

BY_OWNER = "its owner disabled it"
PINGS_PENDING = 8
"""Pending pings of a webhook, which tenants create at will."""
WEBHOOK_ID, DELIVERY_ID = re.compile(ID_PATTERN), re.compile(DELIVERY_PATTERN)


async def create_webhook(
    store: WebhookStore, tenant: str, request: WebhookRequest, at: float, allowed: Sequence[Network]
) -> NewWebhook:
    """Create a webhook.

    Raises:
        BadInput: its URL could never be sent to.
        Conflict: the tenant has too many webhooks.
    """
    check_url(request.url, allowed)
    if len(await store.webhooks(tenant)) >= WEBHOOKS_PER_TENANT:
        raise _too_many()
    record = WebhookRecord(
        id=f"wh_{token()}",
        tenant=tenant,
        url=request.url,
        events=tuple(dict.fromkeys(request.events)),
        secrets=rotated((), new_secret(), at, 0.0),
        created_at=at,
        after=await store.horizon(),
        label=request.label,
    )
    await store.change_webhook(tenant, record.id, lambda _: record)
    # Concurrent requests may each have seen room. A copy of the store that lags may not list what is stored by now.
    place = (record.created_at, record.id)
    before = sum((one.created_at, one.id) < place for one in await store.webhooks(tenant))
    if before >= WEBHOOKS_PER_TENANT:
        await store.change_webhook(tenant, record.id, lambda _: None)
        raise _too_many()
    return _with_secret(record)


async def list_webhooks(store: WebhookStore, tenant: str) -> list[WebhookInfo]:
    return [webhook_info(record) for record in await store.webhooks(tenant)]


async def own_webhook(store: WebhookStore, tenant: str, id: str) -> WebhookRecord:  # noqa: A002
    record = await store.webhook(tenant, id) if WEBHOOK_ID.fullmatch(id) else None
    if record is None:
        raise _no_webhook(id)
    return record


async def change_webhook(
    store: WebhookStore,
    tenant: str,
    id: str,  # noqa: A002
    change: WebhookChange,
    allowed: Sequence[Network],
) -> WebhookInfo:
    """Change the fields that `change` gives. An enabled webhook gets events from then on.

    Raises:
        BadInput: its URL could never be sent to.
    """
    if change.url is not None:
        check_url(change.url, allowed)
    await own_webhook(store, tenant, id)
    horizon = await store.horizon()

    def changed(present: WebhookRecord | None) -> WebhookRecord:
        if present is None:
            raise _no_webhook(id)
        given = {name: getattr(change, name) for name in ("url", "label") if getattr(change, name) is not None}
        if change.events is not None:
            given["events"] = tuple(dict.fromkeys(change.events))
        if change.disabled is True and not present.disabled:
            given["disabled"] = BY_OWNER
        if change.disabled is False and present.disabled:
            given |= {"disabled": "", "failing_since": None, "after": horizon}
        return structs.replace(present, **given)

    made = await store.change_webhook(tenant, id, changed)
    assert made is not None  # noqa: S101 - the function returns one
    return webhook_info(made)


async def delete_webhook(store: WebhookStore, tenant: str, id: str) -> None:  # noqa: A002
    """Remove a webhook and its pending deliveries."""
    await own_webhook(store, tenant, id)
    await store.change_webhook(tenant, id, lambda _: None)


async def rotate_secret(
    store: WebhookStore,
    tenant: str,
    id: str,  # noqa: A002
    request: WebhookRotation,
    at: float,
) -> NewWebhook:
    """Give a webhook a new secret; the old one also signs for `request.overlap_s` seconds."""
    fresh = new_secret()

    def changed(present: WebhookRecord | None) -> WebhookRecord:
        if present is None:
            raise _no_webhook(id)
        return structs.replace(present, secrets=rotated(present.secrets, fresh, at, request.overlap_s))

    await own_webhook(store, tenant, id)
    made = await store.change_webhook(tenant, id, changed)
    assert made is not None  # noqa: S101 - the function returns one
    return structs.replace(_with_secret(made), replaced_until=at + request.overlap_s)


async def list_deliveries(
    store: WebhookStore,
    tenant: str,
    id: str,  # noqa: A002
    limit: int,
) -> list[DeliveryInfo]:
    """Deliveries of a webhook, newest first."""
    await own_webhook(store, tenant, id)
    newest = sorted(await store.deliveries(tenant, id), key=lambda record: (-record.created_at, record.id))
    return [delivery_info(record) for record in newest[:limit]]


async def resend(store: WebhookStore, tenant: str, id: str, delivery: str, at: float) -> DeliveryInfo:  # noqa: A002
    """Send a delivery again: same id and body, new schedule.

    Raises:
        NotFound: the delivery is not kept.
        Conflict: the webhook is disabled.
    """
    await _enabled(store, tenant, id)

    def changed(present: DeliveryRecord | None) -> DeliveryRecord:
        if present is None:
            raise NotFound(f"There is no delivery {delivery[:100]}, or it is not kept any more.")
        return resent(present, at)

    if not DELIVERY_ID.fullmatch(delivery):
        changed(None)
    made = await store.change_delivery(tenant, id, delivery, changed)
    assert made is not None  # noqa: S101 - the function returns one
    return delivery_info(made)


async def ping(store: WebhookStore, tenant: str, id: str, at: float) -> DeliveryInfo:  # noqa: A002
    """Send a `webhook.ping` event.

    Raises:
        Conflict: the webhook is disabled, or has too many pending pings.
    """
    await _enabled(store, tenant, id)
    waiting = [
        record
        for record in await store.deliveries(tenant, id)
        if record.event == WebhookEvent.PING and record.state is DeliveryState.PENDING
    ]
    if len(waiting) >= PINGS_PENDING:
        raise Conflict("Enough pings wait for this webhook; look at its deliveries.")
    record = ping_event(tenant, id, at)
    await store.change_delivery(tenant, id, record.id, lambda present: present or record)
    return delivery_info(record)


def webhook_info(record: WebhookRecord) -> WebhookInfo:
    return WebhookInfo(**_shown(record))


def delivery_info(record: DeliveryRecord) -> DeliveryInfo:
    return DeliveryInfo(
        id=record.id,
        event=record.event,
        about=record.about,
        state=record.state,
        created_at=record.created_at,
        next_at=record.next_at if record.state is DeliveryState.PENDING else None,
        attempts=record.attempts,
    )


async def _enabled(store: WebhookStore, tenant: str, id: str) -> None:  # noqa: A002
    record = await own_webhook(store, tenant, id)
    if record.disabled:
        raise Conflict(f"The webhook is disabled: {record.disabled}. Enable it first.")


def _with_secret(record: WebhookRecord) -> NewWebhook:
    return NewWebhook(**_shown(record), secret=record.secrets[0].value)


def _shown(record: WebhookRecord) -> dict[str, Any]:
    named = msgspec.structs.asdict(record)
    shown = {name: named[name] for name in ("id", "url", "events", "label", "created_at", "failing_since")}
    return shown | {"disabled": bool(record.disabled), "disabled_because": record.disabled}


def _too_many() -> Conflict:
    return Conflict(f"There may be {WEBHOOKS_PER_TENANT} webhooks; delete one first.")


def _no_webhook(id: str) -> NotFound:  # noqa: A002
    return NotFound(f"There is no webhook {id[:100]}.")
