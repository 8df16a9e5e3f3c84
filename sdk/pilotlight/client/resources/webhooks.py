"""Webhooks and their deliveries."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight_core.model.api.webhook_api import WebhookChange, WebhookRequest, WebhookRotation


class WebhooksClient:
    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def list_webhooks(self) -> list[Json]:
        """Return the tenant's webhooks, oldest first."""
        return list((await self._request("GET", "/v1/webhooks"))["webhooks"])

    async def create(self, request: WebhookRequest) -> Json:
        """Make a webhook; only this answer has its signing secret."""
        return await self._request("POST", "/v1/webhooks", request)

    async def get(self, webhook: str) -> Json:
        return await self._request("GET", _path(webhook))

    async def update(self, webhook: str, change: WebhookChange) -> Json:
        """Change the fields that `change` gives."""
        given = {name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not None}
        return await self._request("PATCH", _path(webhook), given)

    async def delete(self, webhook: str) -> None:
        await self._platform.send("DELETE", _path(webhook))

    async def rotate(self, webhook: str, request: WebhookRotation) -> Json:
        """Make a new signing secret; the former one also signs for a while."""
        return await self._request("POST", f"{_path(webhook)}/rotate", request)

    async def ping(self, webhook: str) -> Json:
        """Send a test event; return its delivery."""
        return await self._request("POST", f"{_path(webhook)}/ping")

    async def list_deliveries(self, webhook: str, limit: int) -> list[Json]:
        """Return at most `limit` past and future deliveries, newest first."""
        answer = await self._platform.request(
            "GET", f"{_path(webhook)}/deliveries", params={"limit": str(limit)}, answer_type=dict[str, Any]
        )
        return list(answer["deliveries"])

    async def resend(self, webhook: str, delivery: str) -> Json:
        """Send a delivery again, under its id."""
        return await self._request("POST", f"{_path(webhook)}/deliveries/{quote(delivery, safe='')}/resend")

    async def _request(self, method: str, path: str, body: Any = None) -> Json:
        return await self._platform.request(method, path, body=body, answer_type=dict[str, Any])


def _path(webhook: str) -> str:
    return f"/v1/webhooks/{quote(webhook, safe='')}"
