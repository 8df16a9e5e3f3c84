"""Webhooks and deliveries in two buckets of the bus.

A delivery is written when it is created, after each failed attempt, and at its end, from which it expires. By
compare-and-set, two senders cannot both count an attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
import structlog

from pilotlight_core.bus import Bus, Kv, KvEntry, NewValue
from pilotlight_core.bus.streams import bucket_stream
from pilotlight_core.model.api.webhook_api import DeliveryRecord, DeliveryState, WebhookRecord
from pilotlight_core.model.subjects import DELIVERY_BUCKET, JOB_BUCKET, WEBHOOK_BUCKET
from pilotlight_gateway.webhooks.webhook_port import ChangeDelivery, ChangeWebhook

KEPT_SECONDS = 3 * 86_400.0
"""Retention of finished deliveries."""
MARKER_SECONDS = 3_600.0
"""Retention of removal markers: longer than a mirror goes without reading the bucket again."""

R = TypeVar("R", bound=msgspec.Struct)
log = structlog.get_logger(__name__)
_encoder = msgspec.msgpack.Encoder()
_webhook = msgspec.msgpack.Decoder(WebhookRecord)
_delivery = msgspec.msgpack.Decoder(DeliveryRecord)


def encode(record: msgspec.Struct) -> bytes:
    return _encoder.encode(record)


def read_webhook(key: str, entry: KvEntry) -> WebhookRecord | None:
    """None, and a logged error, if unreadable."""
    try:
        return _webhook.decode(entry.value)
    except msgspec.DecodeError as error:
        log.error("a webhook's record cannot be read", key=key, error=str(error))
        return None


def read_delivery(key: str, data: bytes) -> DeliveryRecord | None:
    """None if the record is of another kind or unreadable."""
    if not key.rpartition(".")[2].startswith("msg_"):
        return None
    try:
        return _delivery.decode(data)
    except msgspec.DecodeError as error:
        log.error("a delivery's record cannot be read", key=key, error=str(error))
        return None


def life_of(record: DeliveryRecord) -> float | None:
    """Seconds until a record expires; None for a pending delivery."""
    return None if record.state is DeliveryState.PENDING else KEPT_SECONDS


class BusWebhooks:
    """The `WebhookStore` over the bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._webhooks = bus.kv(WEBHOOK_BUCKET)
        self._deliveries = bus.kv(DELIVERY_BUCKET)

    async def webhooks(self, tenant: str) -> list[WebhookRecord]:
        found = await self._webhooks.entries(f"{tenant}.")
        records = (read_webhook(key, entry) for key, entry in found.items())
        return sorted(
            (record for record in records if record is not None), key=lambda record: (record.created_at, record.id)
        )

    async def webhook(self, tenant: str, id: str) -> WebhookRecord | None:  # noqa: A002
        entry = await self._webhooks.get(f"{tenant}.{id}")
        return None if entry is None else _webhook.decode(entry.value)

    async def change_webhook(self, tenant: str, id: str, change: ChangeWebhook) -> WebhookRecord | None:  # noqa: A002
        return await _change(self._webhooks, f"{tenant}.{id}", _webhook.decode, change, lambda _: None)

    async def deliveries(self, tenant: str, webhook: str) -> list[DeliveryRecord]:
        found = await self._deliveries.entries(f"{tenant}.{webhook}.")
        records = (read_delivery(key, entry.value) for key, entry in found.items())
        return [record for record in records if record is not None]

    async def change_delivery(
        self,
        tenant: str,
        webhook: str,
        delivery: str,
        change: ChangeDelivery,
    ) -> DeliveryRecord | None:
        return await _change(self._deliveries, f"{tenant}.{webhook}.{delivery}", _delivery.decode, change, life_of)

    async def horizon(self) -> int:
        return await self._bus.jetstream.last_sequence(bucket_stream(JOB_BUCKET))


async def _change(
    kv: Kv,
    key: str,
    decode: Callable[[bytes], R],
    change: Callable[[R | None], R | None],
    life: Callable[[R], float | None],
) -> R | None:
    wanted: R | None = None

    def changed(data: bytes | None) -> NewValue | None:
        nonlocal wanted
        present = decode(data) if data is not None else None
        wanted = change(present)
        if wanted == present:
            return None
        return NewValue(None, MARKER_SECONDS) if wanted is None else NewValue(encode(wanted), life(wanted))

    await kv.change(key, changed)
    return wanted
