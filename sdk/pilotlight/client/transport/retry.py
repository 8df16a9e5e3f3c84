"""Repeats a request that was provably not taken, or is safe to repeat."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeVar
from weakref import WeakSet

import stamina
from stamina.instrumentation import RetryDetails, RetryHook, get_on_retry_hooks, set_on_retry_hooks

from pilotlight.definitions.errors import PilotlightError, Unreachable

T = TypeVar("T")

REFUSED = (429, 503)
"""Statuses of requests that were not taken."""
PATIENCE_S = 60.0
"""How long a request without a deadline is repeated."""
CONNECT_PATIENCE_S = 10.0
"""The same while nothing answers; a gateway restarts in less."""
QUICK_CONNECT_S = 1.0
"""The same for commands."""
IN_USE = "idempotency_key_in_use"
"""An earlier attempt still runs; it counts against no limit."""
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
    """Return the seconds until a request is repeated; None: not at all.

    Args:
        error: of attempt number `attempt` (from 1).
        spent: seconds since the first attempt began or failed.
        left: seconds until the caller's deadline.
        repeatable: whether the request may be taken twice.
        connect_within: seconds of attempts while nothing answers.
    """
    if error.wire_code == IN_USE:
        delay = error.retry_after if error.retry_after is not None else FIRST_BACKOFF_S
        return delay if delay < left else None
    lost = error.wire_code == "call_lost"
    refused = error.meaning.status in REFUSED and error.more.get("should_retry", error.meaning.retry)
    if attempt >= MAX_ATTEMPTS or not (refused or (lost and repeatable)):
        return None
    wait_s = connect_within if isinstance(error, Unreachable) or lost else PATIENCE_S
    backoff = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (attempt - 1))
    delay = error.retry_after if error.retry_after is not None else backoff
    return delay if spent + delay <= wait_s and delay < left else None


class RequestRetries:
    """The attempts of one request, as `delay_before_retry` allows.

    Args:
        deadline_s: seconds from now; None: no bound.
        from_first_trouble: count from the first failure, since a successful attempt may take long.
        on_wait: called with each error and the seconds of the wait after it.
    """

    def __init__(
        self,
        deadline_s: float | None = None,
        *,
        repeatable: bool = False,
        connect_within: float = CONNECT_PATIENCE_S,
        from_first_trouble: bool = False,
        on_wait: Callable[[PilotlightError, float], None] = lambda *_: None,
    ) -> None:
        self._began_at = time.monotonic()
        self._deadline_s = deadline_s
        self._repeatable = repeatable
        self._connect_within = connect_within
        self._counts_from = None if from_first_trouble else self._began_at
        self._from_first_trouble = from_first_trouble
        self._attempt = 0
        self._on_wait = on_wait
        self._ended = False

    @property
    def left_s(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return None if self._deadline_s is None else max(0.0, self._deadline_s - (time.monotonic() - self._began_at))

    def end(self) -> None:
        """Make this attempt the last one."""
        self._ended = True

    def delay_after(self, error: PilotlightError) -> float | None:
        """Count a failed attempt; return the seconds until the next one, None without one."""
        if self._ended:
            return None
        at = time.monotonic()
        if self._from_first_trouble and error.wire_code == IN_USE:
            self._counts_from, self._attempt = None, 0
        else:
            self._attempt += 1
            self._counts_from = at if self._counts_from is None else self._counts_from
        left = self.left_s
        delay = delay_before_retry(
            error,
            attempt=self._attempt,
            spent=at - (at if self._counts_from is None else self._counts_from),
            left=float("inf") if left is None else left,
            repeatable=self._repeatable,
            connect_within=self._connect_within,
        )
        if delay is not None:
            delay *= random.uniform(1.0, 1.1)
            self._on_wait(error, delay)
        return delay

    def attempts(self) -> AsyncIterator[stamina.Attempt]:
        """Iterate over attempts: context managers around a sending."""
        return attempts(self.delay_after)

    async def run(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send the request until an attempt succeeds.

        Raises:
            PilotlightError: of the last attempt.
        """
        async for attempt in self.attempts():
            with attempt:
                return await send()
        raise AssertionError("attempts end with a result or raise")


def attempts(delay_after: Callable[[PilotlightError], float | None]) -> AsyncIterator[stamina.Attempt]:
    """Iterate over attempts: context managers around each try.

    `delay_after` returns the seconds to wait after an error; None: it is raised. What a process sets for all of its
    retries, `stamina.set_active` and `stamina.set_testing`, holds for these, too; its hooks do not see them.
    """

    def backoff(error: Exception) -> float | bool:
        delay = delay_after(error) if isinstance(error, PilotlightError) else None
        if delay is None:
            return False
        _hide_from_hooks()
        _waited_for.add(error)
        return delay

    return aiter(stamina.retry_context(on=backoff, attempts=None, timeout=None))


_waited_for: WeakSet[Exception] = WeakSet()
"""The errors after which the client waits."""


@cache
def _hide_from_hooks() -> None:
    """Hide the client's retries from the process's hooks; the default hook prints a line for each."""
    set_on_retry_hooks([_of_others(hook) for hook in get_on_retry_hooks()])


def _of_others(hook: RetryHook) -> RetryHook:
    def on_retry(details: RetryDetails) -> AbstractContextManager[None] | None:
        return None if details.caused_by in _waited_for else hook(details)

    return on_retry
