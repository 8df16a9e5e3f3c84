"""The port of webhooks and deliveries, and its in-memory twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookRecord

ChangeWebhook = Callable[[WebhookRecord | None], WebhookRecord | None]
ChangeDelivery = Callable[[DeliveryRecord | None], DeliveryRecord | None]


class WebhookStore(Protocol):
    """Records by tenant. Callers have checked the parts of the keys (`check_name`).

    `change_…` takes a pure function from the present record (None: none) to the next one (None: remove it), which may
    raise to refuse, and is called again after a conflict. All methods raise BusError, `change_…` also Conflict.
    """

    async def webhooks(self, tenant: str) -> list[WebhookRecord]:
        """The tenant's webhooks, oldest first."""
        ...

    async def webhook(self, tenant: str, id: str) -> WebhookRecord | None: ...  # noqa: A002

    async def change_webhook(self, tenant: str, id: str, change: ChangeWebhook) -> WebhookRecord | None: ...  # noqa: A002

    async def deliveries(self, tenant: str, webhook: str) -> list[DeliveryRecord]:
        """The stored deliveries, in the order of their last change."""
        ...

    async def change_delivery(
        self,
        tenant: str,
        webhook: str,
        delivery: str,
        change: ChangeDelivery,
    ) -> DeliveryRecord | None: ...

    async def horizon(self) -> int:
        """The sequence number of the last change of any job."""
        ...


@dataclass(kw_only=True)
class MemoryWebhooks:
    """An in-memory `WebhookStore`."""

    webhook_records: dict[tuple[str, str], WebhookRecord] = field(default_factory=dict)
    delivery_records: dict[tuple[str, str, str], DeliveryRecord] = field(default_factory=dict)
    last: int = 0

    async def webhooks(self, tenant: str) -> list[WebhookRecord]:
        return [record for record in self.webhook_records.values() if record.tenant == tenant]

    async def webhook(self, tenant: str, id: str) -> WebhookRecord | None:  # noqa: A002
        return self.webhook_records.get((tenant, id))

    async def change_webhook(self, tenant: str, id: str, change: ChangeWebhook) -> WebhookRecord | None:  # noqa: A002
        record = change(self.webhook_records.get((tenant, id)))
        if record is None:
            self.webhook_records.pop((tenant, id), None)
        else:
            self.webhook_records[tenant, id] = record
        return record

    async def deliveries(self, tenant: str, webhook: str) -> list[DeliveryRecord]:
        return [record for key, record in self.delivery_records.items() if key[:2] == (tenant, webhook)]

    async def change_delivery(
        self,
        tenant: str,
        webhook: str,
        delivery: str,
        change: ChangeDelivery,
    ) -> DeliveryRecord | None:
        key = (tenant, webhook, delivery)
        record = change(self.delivery_records.get(key))
        self.delivery_records.pop(key, None)
        if record is not None:
            self.delivery_records[key] = record
        return record

    async def horizon(self) -> int:
        return self.last
