"""Where webhooks and their deliveries are kept: the verbs, and the fake that tests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookRecord

ChangeWebhook = Callable[[WebhookRecord | None], WebhookRecord | None]
ChangeDelivery = Callable[[DeliveryRecord | None], DeliveryRecord | None]


class WebhookStore(Protocol):
    """Records by tenant; callers have checked the parts of their keys (`check_name`).

    `change_…` takes a pure function from the present record (None: there is none) to the next one (None: remove it).
    The function may raise to refuse, and is called again after a lost race. Conflict: it lost too many races.
    """

    async def webhooks(self, tenant: str) -> list[WebhookRecord]:
        """The tenant's, oldest first."""
        ...

    async def webhook(self, tenant: str, id: str) -> WebhookRecord | None: ...  # noqa: A002

    async def change_webhook(self, tenant: str, id: str, change: ChangeWebhook) -> WebhookRecord | None: ...  # noqa: A002

    async def deliveries(self, tenant: str, webhook: str) -> list[DeliveryRecord]:
        """Those that are kept, in the order of their last change."""
        ...

    async def change_delivery(
        self,
        tenant: str,
        webhook: str,
        delivery: str,
        change: ChangeDelivery,
    ) -> DeliveryRecord | None: ...

    async def horizon(self) -> int:
        """The sequence of the last change of any job."""
        ...


@dataclass(kw_only=True)
class MemoryWebhooks:
    """Keeps records in dictionaries."""

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
