"""Webhooks: who is told when jobs end, and what was sent."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pilotlight.client.platform import Json, Platform
from pilotlight_core.model.api.webhook_api import WebhookChange, WebhookRequest, WebhookRotation


class Webhooks:
    """What is asked about webhooks."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def all(self) -> list[Json]:
        """All webhooks of the tenant, oldest first."""
        return list((await self._ask("GET", "/v1/webhooks"))["webhooks"])

    async def create(self, request: WebhookRequest) -> Json:
        """A new webhook; its signing secret is in this answer and nowhere else."""
        return await self._ask("POST", "/v1/webhooks", request)

    async def get(self, webhook: str) -> Json:
        """One webhook."""
        return await self._ask("GET", _path(webhook))

    async def change(self, webhook: str, change: WebhookChange) -> Json:
        """Change what `change` gives."""
        given = {name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not None}
        return await self._ask("PATCH", _path(webhook), given)

    async def delete(self, webhook: str) -> None:
        """End a webhook."""
        await self._platform.tell("DELETE", _path(webhook))

    async def rotate(self, webhook: str, request: WebhookRotation) -> Json:
        """A new signing secret; the former one signs beside it for a while."""
        return await self._ask("POST", f"{_path(webhook)}/rotate", request)

    async def ping(self, webhook: str) -> Json:
        """Send an event that tells nothing; its delivery."""
        return await self._ask("POST", f"{_path(webhook)}/ping")

    async def deliveries(self, webhook: str, limit: int) -> list[Json]:
        """What was, and is to be, sent, newest first."""
        answer = await self._platform.ask(
            "GET", f"{_path(webhook)}/deliveries", params={"limit": str(limit)}, answer_type=dict[str, Any]
        )
        return list(answer["deliveries"])

    async def resend(self, webhook: str, delivery: str) -> Json:
        """Send a delivery again, under its id."""
        return await self._ask("POST", f"{_path(webhook)}/deliveries/{quote(delivery, safe='')}/resend")

    async def _ask(self, method: str, path: str, body: Any = None) -> Json:
        return await self._platform.ask(method, path, body=body, answer_type=dict[str, Any])


def _path(webhook: str) -> str:
    return f"/v1/webhooks/{quote(webhook, safe='')}"
