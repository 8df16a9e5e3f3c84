"""Makes deliveries of events.

A delivery's id follows from its event, so an event that is found twice has one delivery. Bodies name a job and where
its result is, never the result.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec

from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookEvent
from pilotlight_core.model.ids import token

ID_BYTES = 32


def delivery_id(webhook: str, event: str, about: str, round: int = 0) -> str:  # noqa: A002
    """The `webhook-id` of an event; `round` counts the redrives of its subject."""
    digest = hashlib.sha256(f"{webhook}\0{event}\0{about}\0{round}".encode()).hexdigest()
    return f"msg_{digest[:ID_BYTES]}"


def event_body(event: str, at: float, data: dict[str, Any]) -> bytes:
    """`{"type", "timestamp", "data"}`, as in Standard Webhooks."""
    moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return msgspec.json.encode({"type": event, "timestamp": moment, "data": data})


def job_event(
    tenant: str,
    webhook: str,
    event: str,
    job: str,
    data: dict[str, Any],
    at: float,
    round: int = 0,  # noqa: A002
    traceparent: str = "",
) -> DeliveryRecord:
    """The delivery about a job that ended at the unix second `at`; each redrive is a new `round`."""
    return DeliveryRecord(
        id=delivery_id(webhook, event, job, round),
        tenant=tenant,
        webhook=webhook,
        event=event,
        about=job,
        body=event_body(event, at, data),
        created_at=at,
        next_at=at,
        traceparent=traceparent,
    )


def ping_event(tenant: str, webhook: str, at: float) -> DeliveryRecord:
    """A delivery that tests the webhook."""
    about = token()
    return job_event(tenant, webhook, WebhookEvent.PING, about, {"webhook": webhook}, at)
