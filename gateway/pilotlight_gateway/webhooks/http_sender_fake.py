"""An `HttpSender` for tests, which sends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotlight_core.model.api.webhook_api import DeliveryAttempt
from pilotlight_gateway.webhooks.delivery_attempts import DeliveryOutcome


@dataclass(frozen=True, kw_only=True)
class SentRequest:
    """A recorded request."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(kw_only=True)
class FakeHttpSender:
    """Answers `status` or the next of the URL's `statuses`; `held` URLs wait for their event."""

    status: int = 200
    statuses: dict[str, list[int]] = field(default_factory=dict)
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    posted: list[SentRequest] = field(default_factory=list)
    inside: dict[str, int] = field(default_factory=dict)
    """Attempts under way, by URL."""

    async def post(self, tenant: str, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryOutcome:  # noqa: ARG002
        self.posted.append(SentRequest(url=url, headers=headers, body=body))
        self.inside[url] = self.inside.get(url, 0) + 1
        try:
            if url in self.held:
                await self.held[url].wait()
        finally:
            self.inside[url] -= 1
        listed = self.statuses.get(url, [])
        status = listed.pop(0) if listed else self.status
        at = float(headers["webhook-timestamp"])
        return DeliveryOutcome(attempt=DeliveryAttempt(at=at, ms=1.0, status=status))

    def to(self, url: str) -> list[SentRequest]:
        """The requests to a URL."""
        return [posted for posted in self.posted if posted.url == url]
