"""Webhooks for tests."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.api.webhook_api import JOB_EVENTS, SigningSecret, WebhookRecord
from pilotlight_core.model.ids import token
from pilotlight_gateway.webhooks.webhook_signing import new_secret


def webhook_of(tenant: str, **more: Any) -> WebhookRecord:
    """A webhook that hears of every job."""
    fields: dict[str, Any] = {
        "id": f"wh_{token()}", "url": "https://hooks.example.com/", "events": JOB_EVENTS, "created_at": 1.0,
        "secrets": (SigningSecret(value=new_secret()),),
    }  # fmt: skip
    return WebhookRecord(tenant=tenant, **(fields | more))
