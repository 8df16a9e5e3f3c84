"""Calls with an idempotency key: sent as often as it takes to hear the answer, carried out once."""

from __future__ import annotations

import asyncio
from typing import Any

from pilotlight.client.connection import Connection
from pilotlight.client.retry import Patience
from pilotlight.client.wire import MSGPACK, Outgoing, read_answer
from pilotlight.errors import DeadlineExceeded
from pilotlight_core.model.ids import token

AUTO = "auto"
"""Instead of a key: a fresh one for every call."""
WAIT_S = 25
"""How long an attempt that comes again waits at the platform for the first one. Shorter than `connection.SILENCE_S`."""


def fresh_key() -> str:
    """A key that nobody has used."""
    return f"key_{token()}"


async def call_keyed(
    connection: Connection, outgoing: Outgoing, key: str, *, deadline: float | None, grace_s: float
) -> Any:
    """What the function returns.

    An attempt whose connection breaks is followed by another: the platform goes on with the call, and answers the next
    attempt with the same key as it would have answered the first.

    Raises:
        PilotlightError: how it failed; `call_lost` where the platform cannot say whether it ran.
    """
    patience = Patience(deadline, repeatable=True, from_first_trouble=True)
    headers = {
        "Content-Type": MSGPACK, "Accept": MSGPACK, "Idempotency-Key": fresh_key() if key == AUTO else key,
        "Prefer": f"wait={WAIT_S}",
    }  # fmt: skip

    async def attempt() -> bytes:
        return await connection.fetch("POST", outgoing.path, content=outgoing.body(patience.left), headers=headers)

    try:
        async with asyncio.timeout(None if deadline is None else deadline + grace_s):
            return read_answer(await patience.retrying(attempt))
    except TimeoutError:
        raise DeadlineExceeded(f"{outgoing.path} was not answered within {deadline} s.") from None
