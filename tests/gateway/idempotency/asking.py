"""Requests with a key, and the work that they may cause, for tests of the rim."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.idempotency.key_record import StoredAnswer, fingerprint_of
from pilotlight_gateway.idempotency.keyed_calls import Idempotency, KeyedAnswer, KeyedRequest


def ask(key: str = "k", body: bytes = b"body", call: str = "call_1", **more: Any) -> KeyedRequest:
    """A request."""
    fields: dict[str, Any] = {"tenant": "acme", "idempotent": False, "timeout_s": 30.0} | more
    return KeyedRequest(key=key, fingerprint=fingerprint_of("app.fn", "", b"json", body), call_id=call, **fields)


def told(error: PilotlightError) -> StoredAnswer:
    """An error as it is remembered."""
    return StoredAnswer(status=error.meaning.status, headers=(), body=error.wire_code.encode())


@dataclass(kw_only=True)
class Work:
    """What a call does: says how often it was begun, and ends when and as it is told."""

    begun: int = 0
    error: Exception | None = None
    body: bytes = b"answer"
    hold: asyncio.Event | None = None
    running: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> StoredAnswer:
        self.begun += 1
        self.running.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        return StoredAnswer(status=200, headers=((b"content-type", b"application/json"),), body=self.body)


async def give(gateway: Idempotency, asked: KeyedRequest, work: Work) -> KeyedAnswer:
    """Send it."""
    return await gateway.give(asked, work, told)
