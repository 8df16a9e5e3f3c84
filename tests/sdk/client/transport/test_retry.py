"""When a request is sent again."""

from __future__ import annotations

import asyncio

import pytest
import stamina
from stamina.instrumentation import get_on_retry_hooks, set_on_retry_hooks

from pilotlight.client.transport.retry import (
    MAX_ATTEMPTS,
    RequestRetries,
    _hide_from_hooks,
    attempts,
    delay_before_retry,
)
from pilotlight.definitions.errors import PilotlightError, TooMuch, Unreachable
from pilotlight_core.model.errors import CODES, error_from_code

FOREVER = float("inf")


def delay(
    error: PilotlightError, *, attempt: int = 1, spent: float = 0.0, left: float = FOREVER, repeatable: bool = False
) -> float | None:
    return delay_before_retry(error, attempt=attempt, spent=spent, left=left, repeatable=repeatable)


@pytest.mark.parametrize("code", sorted(CODES))
def test_only_refused_requests_are_repeated(code: str) -> None:
    """429 and 503 were refused, but for what had begun; a call that was taken might run twice."""
    refused = CODES[code].status in (429, 503) and CODES[code].retry
    again = refused or code == "idempotency_key_in_use"

    assert (delay(error_from_code(code, "")) is not None) == again


def test_the_servers_headers_decide() -> None:
    """They have the wait, and whether to retry at all."""
    assert delay(error_from_code("queue_full", "", retry_after=7.5)) == 7.5
    assert delay(error_from_code("queue_full", "", should_retry=False)) is None
    assert delay(error_from_code("queue_full", "")) == 0.1


def test_backoff_doubles_up_to_a_bound() -> None:
    """Attempts are counted."""
    error = TooMuch()
    assert [delay(error, attempt=number) for number in (1, 2, 3, 9)] == [0.1, 0.2, 0.4, 5.0]
    assert delay(error, attempt=MAX_ATTEMPTS) is None


def test_attempts_end() -> None:
    """They end at the deadline, after a minute without one, and sooner if nothing answers."""
    assert delay(error_from_code("queue_full", "", retry_after=5), left=4) is None
    assert delay(error_from_code("queue_full", "", retry_after=5), left=6) == 5
    assert delay(TooMuch(), spent=59.9) is not None
    assert delay(TooMuch(), spent=60) is None
    assert delay(Unreachable(), spent=9) is not None
    assert delay(Unreachable(), spent=10) is None


def test_a_lost_request_is_repeated_where_that_is_safe() -> None:
    """A lost request may have been carried out."""
    assert delay(error_from_code("call_lost", ""), repeatable=True) is not None
    assert delay(error_from_code("call_lost", ""), repeatable=False) is None


def test_an_attempt_that_runs_is_awaited() -> None:
    """The wait ends only at the deadline."""
    error = error_from_code("idempotency_key_in_use", "", retry_after=3.0)

    assert delay(error, attempt=MAX_ATTEMPTS, spent=3600.0, left=3.1) == 3.0
    assert delay(error, left=3.0) is None


def test_time_counts_from_the_first_failure() -> None:
    """A long call that is lost at its end is still repeated."""
    patience = RequestRetries(repeatable=True, connect_within=0.0, from_first_trouble=True)
    assert patience.delay_after(error_from_code("call_lost", "", retry_after=0.0)) == 0.0
    assert patience.delay_after(error_from_code("idempotency_key_in_use", "", retry_after=0.0)) == 0.0
    assert patience.delay_after(error_from_code("call_lost", "", retry_after=0.0)) == 0.0
    assert patience.delay_after(error_from_code("call_lost", "", retry_after=0.001)) is None


def test_delays_are_spread() -> None:
    """Each delay is a little longer than the server's, and not shorter."""
    delays = [RequestRetries().delay_after(TooMuch("slow down", retry_after=2.0)) or 0.0 for _ in range(50)]
    assert len(set(delays)) > 1
    assert 2.0 <= min(delays) <= max(delays) <= 2.2


def test_each_wait_is_reported() -> None:
    """The callback gets the error and the seconds."""
    told: list[tuple[str, float]] = []
    patience = RequestRetries(5, on_wait=lambda error, seconds: told.append((error.detail, seconds)))
    patience.delay_after(TooMuch("slow down", retry_after=0.0))
    assert patience.delay_after(TooMuch("slow down", retry_after=9.0)) is None

    assert told == [("slow down", 0.0)]


async def test_an_answer_that_was_passed_on_ends_the_attempts() -> None:
    """A later error is raised even if its code allows a retry."""
    patience, tries = RequestRetries(), 0

    async def attempt() -> None:
        nonlocal tries
        tries += 1
        if tries == 2:
            patience.end()
        raise TooMuch("slow down", retry_after=0.0)

    with pytest.raises(TooMuch):
        await patience.run(attempt)
    assert tries == 2


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError(), GeneratorExit()])
async def test_other_errors_are_raised_at_once(error: BaseException) -> None:
    """Cancellation and a bug of the SDK are not retried."""
    tries = 0

    async def attempt() -> None:
        nonlocal tries
        tries += 1
        raise error

    with pytest.raises(type(error)):
        await RequestRetries().run(attempt)
    assert tries == 1


async def test_retries_are_hidden_from_hooks_of_the_process() -> None:
    """The hooks still get the retries of other code, also of errors of the SDK."""
    seen: list[Exception] = []
    before = get_on_retry_hooks()
    set_on_retry_hooks([lambda details: seen.append(details.caused_by)])
    _hide_from_hooks.cache_clear()
    other = TooMuch("raised to a loop of the user's own")
    try:
        answers = iter([TooMuch("slow down", retry_after=0.0), None])
        async for attempt in attempts(lambda _: 0.0):
            with attempt:
                if (error := next(answers)) is not None:
                    raise error
        async for attempt in stamina.retry_context(on=TooMuch, wait_initial=0.0, wait_jitter=0.0):
            with attempt:
                if attempt.num == 1:
                    raise other
    finally:
        set_on_retry_hooks(before)
    assert seen == [other]


async def test_a_process_that_turns_retries_off_turns_these_off_too() -> None:
    """`stamina.set_active` holds for all retries of a process."""
    tries = 0

    async def attempt() -> None:
        nonlocal tries
        tries += 1
        raise TooMuch("slow down", retry_after=0.0)

    stamina.set_active(False)
    try:
        with pytest.raises(TooMuch):
            await RequestRetries(5).run(attempt)
    finally:
        stamina.set_active(True)
    assert tries == 1


async def test_the_last_error_is_raised() -> None:
    """It is not wrapped."""
    tries = 0

    async def attempt() -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise TooMuch("slow down", retry_after=0.0)
        raise error_from_code("internal", "oh")

    with pytest.raises(PilotlightError, match="oh"):
        await RequestRetries(5).run(attempt)
    assert tries == 3
    left = RequestRetries(5).left_s
    assert left is not None
    assert 4 < left <= 5
    assert RequestRetries().left_s is None
