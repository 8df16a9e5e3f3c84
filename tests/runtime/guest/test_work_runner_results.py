"""From what the tenant's code returned or raised to the frames that say so."""

from __future__ import annotations

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest.basics.remote_errors import BadAnswer, BadArguments
from pilotlight_runtime.guest.call_table import CallProgress
from pilotlight_runtime.guest.frames import Invoke, Result
from pilotlight_runtime.guest.work_runner import (
    NOTHING,
    answered,
    cancelled,
    encoded,
    failed,
    outcome_of,
    streamed,
    with_article,
)

CALL = Invoke(call_id="a")


def progress(*, is_cancelled: bool = False) -> CallProgress:
    made = CallProgress()
    made.cancelled = is_cancelled
    return made


def test_a_value_becomes_the_result_of_its_call() -> None:
    """With the time that the code took."""
    assert answered(CALL, progress(), [1, 2], 7) == Result(call_id="a", output=values.encode([1, 2]), execute_ns=7)
    assert streamed(CALL, progress(), 7, 3) == Result(call_id="a", output=NOTHING, execute_ns=7, last_seq=3)


def test_what_cannot_travel_is_a_bad_answer() -> None:
    """Its type or its size is named."""
    with pytest.raises(BadAnswer, match="the answer is an object"):
        encoded(object())
    with pytest.raises(BadAnswer, match="10 are the most"):
        encoded("x" * 100, most=10)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (BadArguments("x: no"), Outcome.BAD_INPUT),
        (BadAnswer("too large"), Outcome.BAD_OUTPUT),
        (ValueError("no"), Outcome.RAISED),
        (SystemExit(3), Outcome.RAISED),
    ],
)
def test_a_failure_is_input_output_or_the_codes_own(error: BaseException, outcome: Outcome) -> None:
    """Whatever it is, the frame carries its text."""
    frame = failed(CALL, progress(), error, 5, last_seq=2)

    assert outcome_of(error) is outcome
    assert (frame.outcome, frame.execute_ns, frame.last_seq) == (outcome, 5, 2)
    assert frame.error is not None


def test_a_cancelled_call_is_cancelled_whatever_it_did() -> None:
    """Nobody waits for its value or its error."""
    expected = cancelled(CALL, 5)
    assert expected.outcome is Outcome.CANCELLED
    assert answered(CALL, progress(is_cancelled=True), object(), 5) == expected
    assert failed(CALL, progress(is_cancelled=True), ValueError(), 5) == expected
    assert streamed(CALL, progress(is_cancelled=True), 5, 0) == expected


@pytest.mark.parametrize(("cls", "text"), [(list, "a list"), (int, "an int"), (OSError, "an OSError")])
def test_a_type_is_named_with_its_article(cls: type, text: str) -> None:
    """Messages are sentences."""
    assert with_article(cls) == text
