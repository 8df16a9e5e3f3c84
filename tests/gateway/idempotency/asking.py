"""Requests with a key, and the work that they may cause, for tests of the rim."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.idempotency.key_record import Answer, fingerprint_of
from pilotlight_gateway.idempotency.keyed_calls import Ask, Given, Idempotency


def ask(key: str = "k", body: bytes = b"body", call: str = "call_1", **more: Any) -> Ask:
    """A request."""
    fields: dict[str, Any] = {"tenant": "acme", "idempotent": False, "patience": 30.0} | more
    return Ask(key=key, fingerprint=fingerprint_of("app.fn", "", b"json", body), call=call, **fields)


def told(error: PilotlightError) -> Answer:
    """An error as it is remembered."""
    return Answer(status=error.meaning.status, headers=(), body=error.wire_code.encode())


@dataclass(kw_only=True)
class Work:
    """What a call does: says how often it was begun, and ends when and as it is told."""

    begun: int = 0
    error: Exception | None = None
    body: bytes = b"answer"
    hold: asyncio.Event | None = None
    running: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> Answer:
        self.begun += 1
        self.running.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        return Answer(status=200, headers=((b"content-type", b"application/json"),), body=self.body)


async def give(gateway: Idempotency, asked: Ask, work: Work) -> Given:
    """Send it."""
    return await gateway.give(asked, work, told)
