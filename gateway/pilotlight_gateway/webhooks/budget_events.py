"""The events of budgets: each threshold that a home has noted, once for each webhook that wants it.

What was reached is in the home's record, so no event is lost while nobody reads; one that is found twice finds its
delivery.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, KvEntry, Mirror
from pilotlight_core.model.api.budget_api import usd_text
from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookEvent, WebhookRecord
from pilotlight_core.model.money.budgets import HomeTranches, Tranche
from pilotlight_core.model.subjects import BUDGET_BUCKET
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks, read_webhook
from pilotlight_gateway.webhooks.delivery_schedule import EndpointKey
from pilotlight_gateway.webhooks.delivery_sender import DeliverySender
from pilotlight_gateway.webhooks.webhook_events import job_event

TOLD_WITHIN_S = 86_400.0
"""What was reached longer ago is not told any more: deliveries are kept for three days, and would be made again."""
HOME = "home."
PAUSE = 1.0

log = structlog.get_logger(__name__)
_decoder = msgspec.msgpack.Decoder(HomeTranches)


class BudgetFeed:
    """Makes the deliveries of all tenants' thresholds. `wall`: unix seconds."""

    def __init__(
        self,
        bus: Bus,
        webhooks: Mirror,
        sender: DeliverySender,
        wall: Callable[[], float] = time.time,
        store: BusWebhooks | None = None,
    ) -> None:
        self._bus = bus
        self._webhooks = webhooks
        self._sender = sender
        self._store = store or BusWebhooks(bus)
        self._wall = wall
        self._told: dict[str, dict[str, tuple[int, ...]]] = {}
        """By tenant: the thresholds of each budget that its webhooks have deliveries of."""
        self._due: dict[str, HomeTranches] = {}
        """Tenants whose webhooks are to hear of what was reached."""
        self._full: dict[EndpointKey, HomeTranches] = {}
        """Webhooks that had no room for what was reached; nobody else waits for them."""
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        mirror = self._bus.mirror(BUDGET_BUCKET, HOME)
        mirror.on_change.append(self._note)
        async with mirror:
            while True:
                self._changed.clear()
                try:
                    await self._notify_all()
                except BusError as error:
                    log.warning("thresholds of budgets are told again", error=str(error))
                    await asyncio.sleep(PAUSE)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PAUSE if self._full else None):
                        await self._changed.wait()

    async def _notify_all(self) -> None:
        """Raises BusError: what was not told is still due. More may become due of whoever is being told."""
        for tenant in list(self._due):
            record = self._due.pop(tenant)
            try:
                await self._notify(record)
            except BusError:
                self._due.setdefault(tenant, record)
                raise
        for endpoint in [endpoint for endpoint in self._full if self._sender.has_room(endpoint)]:
            record, name = self._full.pop(endpoint), f"{endpoint.tenant}.{endpoint.webhook}"
            if (entry := self._webhooks.get(name)) is None or (webhook := read_webhook(name, entry)) is None:
                continue  # it was removed
            try:
                await self._notify_webhook(record, webhook)
            except BusError:
                self._full.setdefault(endpoint, record)
                raise

    def _note(self, key: str, entry: KvEntry | None) -> None:
        tenant = key.removeprefix(HOME)
        record = read_tranches(entry)
        told = {name: one.told for name, one in record.tranches.items()} if record is not None else {}
        if record is not None and told != self._told.get(tenant, {}):
            self._due[tenant] = record
            self._changed.set()
        self._told[tenant] = told
        if not told:
            del self._told[tenant]

    async def _notify(self, record: HomeTranches) -> None:
        for key, entry in list(self._webhooks.items()):
            webhook = read_webhook(key, entry)
            if webhook is not None and webhook.tenant == record.tenant:
                await self._notify_webhook(record, webhook)

    async def _notify_webhook(self, record: HomeTranches, webhook: WebhookRecord) -> None:
        endpoint = EndpointKey(webhook.tenant, webhook.id)
        for delivery in threshold_events(record, webhook, self._wall()):
            if not self._sender.has_room(endpoint):
                self._full[endpoint] = record
                return
            await self._deliver(delivery)

    async def _deliver(self, record: DeliveryRecord) -> None:
        made = await self._store.change_delivery(
            record.tenant, record.webhook, record.id, lambda present: present or record
        )
        if made is record:
            self._sender.put(record)


def threshold_events(record: HomeTranches, webhook: WebhookRecord, at: float) -> Iterator[DeliveryRecord]:
    """The deliveries that a tenant's thresholds cause for a webhook, of what was reached since it was made."""
    if webhook.disabled or WebhookEvent.THRESHOLD not in webhook.events:
        return
    since = max(webhook.created_at, at - TOLD_WITHIN_S)
    for name, tranche in record.tranches.items():
        for percent, told_at in zip(tranche.told, tranche.told_at, strict=False):
            if told_at >= since:
                yield threshold_event(record.tenant, webhook.id, name, tranche, percent, told_at)


def threshold_event(
    tenant: str, webhook: str, budget: str, tranche: Tranche, percent: int, told_at: float
) -> DeliveryRecord:
    """The delivery of one threshold; its id follows from the budget, the period and the percent."""
    data = {
        "budget": budget,
        "percent": percent,
        "function": tranche.function or None,
        "key": tranche.key or None,
        "usd": usd_text(tranche.amount),
        "spent_usd": usd_text(tranche.spent),
        "period_began": tranche.begins,
    }
    about = f"{budget}@{tranche.begins}:{percent}"
    return job_event(tenant, webhook, WebhookEvent.THRESHOLD, about, data, told_at)


def read_tranches(entry: KvEntry | None) -> HomeTranches | None:
    """None: there are none, or they are of a later release."""
    try:
        return _decoder.decode(entry.value) if entry is not None else None
    except msgspec.DecodeError:
        return None
