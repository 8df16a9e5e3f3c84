"""Tells webhooks of what is no job: rollouts, levels of functions. A delivery's id follows from its event, so one told
twice is one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import structlog

from pilotlight_core.bus import BusError
from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookRecord
from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.webhooks.webhook_events import job_event
from pilotlight_gateway.webhooks.webhook_port import ChangeDelivery

log = structlog.get_logger(__name__)


class DeliveryStore(Protocol):
    """What is needed of a `WebhookStore`."""

    async def webhooks(self, tenant: str) -> list[WebhookRecord]: ...
    async def change_delivery(
        self, tenant: str, webhook: str, delivery: str, change: ChangeDelivery
    ) -> DeliveryRecord | None: ...


async def notify_webhooks(
    store: DeliveryStore, tenant: str, event: str, about: str, data: dict[str, Any], at: float
) -> None:
    """Make the deliveries of one event. What goes wrong is logged: whoever tells it goes on."""
    try:
        await make_deliveries(store, tenant, event, about, data, at)
    except (BusError, PilotlightError, OSError) as error:
        log.warning("webhooks were not told of an event", tenant=tenant, kind=event, error=str(error))


async def make_deliveries(
    store: DeliveryStore, tenant: str, event: str, about: str, data: dict[str, Any], at: float
) -> None:
    """Make the deliveries of one event; whoever sends deliveries finds them.

    Raises:
        BusError, OSError, PilotlightError: some may be made; again, the others are.
    """
    for webhook in await store.webhooks(tenant):
        if webhook.disabled or event not in webhook.events:
            continue
        made = job_event(tenant, webhook.id, event, about, data, at)
        await store.change_delivery(tenant, webhook.id, made.id, partial(_first, made))


def _first(made: DeliveryRecord, present: DeliveryRecord | None) -> DeliveryRecord:
    return present or made
