"""The texts of errors are bounded, and say what to do."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import (
    BodyRef,
    RemoteError,
)
from pilotlight_runtime.calls.call_errors import MESSAGE_CHARS, TYPE_CHARS, not_taken_error, truncated_error


def test_an_exceptions_text_is_bounded() -> None:
    """A traceback of megabytes would not fit a frame."""
    error = truncated_error(RemoteError("E" * 10_000, "m" * 10_000, "t" * 100_000 + "end"))

    assert error is not None
    assert len(error.type) == TYPE_CHARS
    assert len(error.message) == MESSAGE_CHARS
    assert error.traceback.endswith("end")
    short = RemoteError("ValueError", "no")
    assert truncated_error(short) == short


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (10, "an answer of 11 bytes is too large, 10 are the most"),
        (0, "did not take an answer of 11 bytes"),
        (20, "did not take an answer of 11 bytes"),
    ],
)
def test_an_answer_that_was_not_taken_was_too_large_or_nobody_knows_why(most: int, said: str) -> None:
    """The limit is named only where it is the reason."""
    error = not_taken_error(11, BodyRef(url="http://origin/bodies/x", token="x", size=most))

    assert error.type == "AnswerNotTaken"
    assert said in error.message
    assert not_taken_error(11, None).message.endswith("did not take an answer of 11 bytes")
