"""When a request is sent again: only where it provably was not taken, or is safe to repeat."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pilotlight.errors import PilotlightError, Unreachable

T = TypeVar("T")

REFUSED = (429, 503)
"""Statuses that say: not taken, come again."""
PATIENCE_S = 60.0
"""How long a caller without a deadline is kept coming again."""
CONNECT_PATIENCE_S = 10.0
"""How long a call knocks at a door that nobody opens: a gateway is restarted in less."""
QUICK_CONNECT_S = 1.0
"""The same where somebody looks on."""
IN_USE = "idempotency_key_in_use"
"""The platform still works on an earlier attempt: no reason to lose patience."""
MAX_ATTEMPTS = 20
FIRST_BACKOFF_S = 0.1
MAX_BACKOFF_S = 5.0


def delay_before_retry(
    error: PilotlightError,
    *,
    attempt: int,
    spent: float,
    left: float,
    repeatable: bool = False,
    connect_within: float = CONNECT_PATIENCE_S,
) -> float | None:
    """Seconds to wait before sending the request again; None: do not.

    Args:
        error: how attempt number `attempt` (from 1) ended.
        spent: seconds since the first attempt began, or since the first one failed.
        left: seconds until the caller's deadline.
        repeatable: whether the request may safely be taken twice.
        connect_within: seconds for which it is tried to reach a platform that does not answer.
    """
    if error.wire_code == IN_USE:
        delay = error.retry_after if error.retry_after is not None else FIRST_BACKOFF_S
        return delay if delay < left else None
    lost = error.wire_code == "call_lost"
    refused = error.meaning.status in REFUSED and error.more.get("should_retry", True)
    if attempt >= MAX_ATTEMPTS or not (refused or (lost and repeatable)):
        return None
    patience = connect_within if isinstance(error, Unreachable) or lost else PATIENCE_S
    backoff = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (attempt - 1))
    delay = error.retry_after if error.retry_after is not None else backoff
    return delay if spent + delay <= patience and delay < left else None


class Patience:
    """One caller's patience over the attempts of one request. `seconds` is the deadline, from now.

    With `from_first_trouble` it counts from the first attempt that failed, since one that goes well may take long.
    `told` hears of each error that is waited out, and for how many seconds.
    """

    def __init__(
        self,
        seconds: float | None = None,
        *,
        repeatable: bool = False,
        connect_within: float = CONNECT_PATIENCE_S,
        from_first_trouble: bool = False,
        told: Callable[[PilotlightError, float], None] = lambda *_: None,
    ) -> None:
        self._began = time.monotonic()
        self._seconds = seconds
        self._repeatable = repeatable
        self._connect_within = connect_within
        self._counts_from = None if from_first_trouble else self._began
        self._from_first_trouble = from_first_trouble
        self._attempt = 0
        self._told = told

    @property
    def left(self) -> float | None:
        """Seconds until the deadline; None if there is none."""
        return None if self._seconds is None else max(0.0, self._seconds - (time.monotonic() - self._began))

    async def wait_after(self, error: PilotlightError) -> None:
        """Wait until the request may be sent again.

        Raises:
            PilotlightError: `error` itself, if it must not or cannot help.
        """
        at = time.monotonic()
        if self._from_first_trouble and error.wire_code == IN_USE:
            self._counts_from, self._attempt = None, 0
        else:
            self._attempt += 1
            self._counts_from = at if self._counts_from is None else self._counts_from
        left = self.left
        delay = delay_before_retry(
            error,
            attempt=self._attempt,
            spent=at - (at if self._counts_from is None else self._counts_from),
            left=float("inf") if left is None else left,
            repeatable=self._repeatable,
            connect_within=self._connect_within,
        )
        if delay is None:
            raise error
        delay *= random.uniform(1.0, 1.1)
        self._told(error, delay)
        await asyncio.sleep(delay)

    async def retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of the first attempt that succeeds."""
        while True:
            try:
                return await attempt()
            except PilotlightError as error:
                await self.wait_after(error)
