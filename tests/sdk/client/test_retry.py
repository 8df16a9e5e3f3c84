"""When a request is sent again."""

from __future__ import annotations

import pytest

from pilotlight.client.retry import MAX_ATTEMPTS, Patience, delay_before_retry
from pilotlight.errors import PilotlightError, TooMuch, Unreachable
from pilotlight_core.model.errors import CODES, error_from_code

FOREVER = float("inf")


def delay(
    error: PilotlightError, *, attempt: int = 1, spent: float = 0.0, left: float = FOREVER, repeatable: bool = False
) -> float | None:
    return delay_before_retry(error, attempt=attempt, spent=spent, left=left, repeatable=repeatable)


@pytest.mark.parametrize("code", sorted(CODES))
def test_only_what_was_not_taken_is_sent_again(code: str) -> None:
    """429 and 503 say so, and that an earlier attempt is still worked on; a call that was taken might run twice."""
    again = CODES[code].status in (429, 503) or code == "idempotency_key_in_use"

    assert (delay(error_from_code(code, "")) is not None) == again


def test_the_servers_word_counts() -> None:
    """How long to wait, and whether at all."""
    assert delay(error_from_code("queue_full", "", retry_after=7.5)) == 7.5
    assert delay(error_from_code("queue_full", "", should_retry=False)) is None
    assert delay(error_from_code("queue_full", "")) == 0.1


def test_backoff_doubles_up_to_a_bound() -> None:
    """And attempts are counted."""
    error = TooMuch()
    assert [delay(error, attempt=number) for number in (1, 2, 3, 9)] == [0.1, 0.2, 0.4, 5.0]
    assert delay(error, attempt=MAX_ATTEMPTS) is None


def test_patience_ends() -> None:
    """With the caller's deadline, after a minute without one, sooner when nobody opens the door."""
    assert delay(error_from_code("queue_full", "", retry_after=5), left=4) is None
    assert delay(error_from_code("queue_full", "", retry_after=5), left=6) == 5
    assert delay(TooMuch(), spent=59.9) is not None
    assert delay(TooMuch(), spent=60) is None
    assert delay(Unreachable(), spent=9) is not None
    assert delay(Unreachable(), spent=10) is None


def test_a_lost_request_is_repeated_where_that_is_safe() -> None:
    """It may have been carried out."""
    assert delay(error_from_code("call_lost", ""), repeatable=True) is not None
    assert delay(error_from_code("call_lost", ""), repeatable=False) is None


def test_what_is_worked_on_is_waited_for() -> None:
    """However long it takes, up to the deadline."""
    error = error_from_code("idempotency_key_in_use", "", retry_after=3.0)

    assert delay(error, attempt=MAX_ATTEMPTS, spent=3600.0, left=3.1) == 3.0
    assert delay(error, left=3.0) is None


async def test_patience_counts_from_the_first_trouble() -> None:
    """A call that ran for long, or is known to run, and is lost then, is asked for again."""
    patience = Patience(repeatable=True, connect_within=0.0, from_first_trouble=True)
    await patience.wait_after(error_from_code("call_lost", "", retry_after=0.0))
    await patience.wait_after(error_from_code("idempotency_key_in_use", "", retry_after=0.0))
    await patience.wait_after(error_from_code("call_lost", "", retry_after=0.0))

    with pytest.raises(PilotlightError):
        await patience.wait_after(error_from_code("call_lost", "", retry_after=0.001))


async def test_who_waits_can_say_so() -> None:
    """Each error that is waited out is told, with how long that takes."""
    told: list[tuple[str, float]] = []
    patience = Patience(5, told=lambda error, seconds: told.append((error.detail, seconds)))
    await patience.wait_after(TooMuch("slow down", retry_after=0.0))
    with pytest.raises(TooMuch):
        await patience.wait_after(TooMuch("slow down", retry_after=9.0))

    assert told == [("slow down", 0.0)]


async def test_patience_counts_attempts_and_raises_the_last_error() -> None:
    """Nothing is wrapped."""
    tries = 0

    async def attempt() -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise TooMuch("slow down", retry_after=0.0)
        raise error_from_code("internal", "oh")

    with pytest.raises(PilotlightError, match="oh"):
        await Patience(5).retrying(attempt)
    assert tries == 3
    left = Patience(5).left
    assert left is not None
    assert 4 < left <= 5
    assert Patience().left is None
