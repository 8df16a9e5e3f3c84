"""Calls with an idempotency key: sent until an answer comes, carried out once."""

from __future__ import annotations

import asyncio
from typing import Any

from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.client.transport.retry import RequestRetries
from pilotlight.client.transport.wire import MSGPACK, OutgoingCall, read_answer
from pilotlight.definitions.errors import DeadlineExceeded
from pilotlight_core.model.ids import token

AUTO = "auto"
"""In place of a key: a fresh one for each call."""
WAIT_S = 25
"""How long a repeated attempt waits for the first one; below `platform_connection.SILENCE_S`."""


def make_key() -> str:
    return f"key_{token()}"


async def call_keyed(
    connection: PlatformConnection, call: OutgoingCall, key: str, *, deadline: float | None, grace_s: float
) -> Any:
    """Make a call, and return the function's answer. After a broken connection it is sent again under its key.

    Raises:
        DeadlineExceeded: after `deadline` and `grace_s` seconds.
        PilotlightError: how it failed; `call_lost` where the platform cannot say whether it ran.
    """
    retries = RequestRetries(deadline, repeatable=True, from_first_trouble=True)
    headers = {
        "Content-Type": MSGPACK, "Accept": MSGPACK, "Idempotency-Key": make_key() if key == AUTO else key,
        "Prefer": f"wait={WAIT_S}", **call.headers,
    }  # fmt: skip

    async def send() -> bytes:
        return await connection.fetch("POST", call.path, content=call.body(retries.left_s), headers=headers)

    try:
        async with asyncio.timeout(None if deadline is None else deadline + grace_s):
            return read_answer(await retries.run(send))
    except TimeoutError:
        raise DeadlineExceeded(f"{call.path} was not answered within {deadline} s.") from None
