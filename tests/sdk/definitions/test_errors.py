"""Errors of the SDK itself: what each is called, what it advises, and as what it can be caught."""

from __future__ import annotations

import pickle
import traceback

import pytest

import pilotlight
from pilotlight.definitions import errors
from pilotlight.definitions.errors import Misuse, NotConfigured, NotEnded, OptionError, PilotlightError, Unreachable
from pilotlight_core.model.errors import CODES


@pytest.mark.parametrize(
    ("error", "title", "advice", "retry"),
    [
        (Unreachable("x"), "The platform cannot be reached", "pilotlight up", True),
        (NotEnded("x"), "The job has not ended", "Wait for it again.", True),
        (NotConfigured("x"), "No platform is configured", "set PILOTLIGHT_URL and PILOTLIGHT_API_KEY", False),
    ],
)
def test_an_error_of_this_side_has_advice_of_its_own(
    error: PilotlightError, title: str, advice: str, *, retry: bool
) -> None:
    """It keeps the status of its code, whose advice is for errors that the platform sends."""
    assert (error.meaning.title, error.meaning.retry) == (title, retry)
    assert error.meaning.status == CODES[error.wire_code].status
    assert advice in error.meaning.advice
    assert error.meaning.advice != CODES[error.wire_code].advice


def test_a_misuse_says_its_detail_only() -> None:
    """Nothing was sent, so the platform's advice does not apply; the field stands beside the text."""
    error = Misuse("id='mine': expected cid_.", field="id")
    assert str(error) == "id='mine': expected cid_."
    assert error.more["field"] == "id"
    assert CODES["bad_input"].advice in str(pilotlight.BadInput("wrong"))


def test_an_option_error_is_caught_as_python_and_as_ours() -> None:
    """A wrong keyword is a TypeError in Python, and BadInput in the tree."""
    for kind in (TypeError, pilotlight.BadInput, PilotlightError):
        with pytest.raises(kind, match="cpu"):
            raise OptionError("cpu='x': expected a number.", field="cpu")


def test_an_unreachable_platform_may_be_tried_again() -> None:
    """Nothing was sent: it is caught as any other platform that has no room."""
    assert issubclass(Unreachable, pilotlight.Unavailable)
    assert issubclass(NotConfigured, pilotlight.Unauthenticated)
    assert issubclass(NotEnded, pilotlight.DeadlineExceeded)


def test_every_error_of_the_room_is_exported() -> None:
    """All are of the tree; the public ones are those of the package."""
    tree = {name for name in errors.__all__ if issubclass(getattr(errors, name), PilotlightError)}
    assert tree == set(errors.__all__)
    assert set(errors.__all__) - set(pilotlight.__all__) == {"NotConfigured", "NotEnded", "Unreachable"}


def test_tracebacks_call_errors_as_users_import_them() -> None:
    """And what they are called is where they are found, also by pickle."""
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert kind.__module__.partition(".")[0] == "pilotlight"
        assert pickle.loads(pickle.dumps(kind)) is kind  # noqa: S301 - of this very process
    said = "".join(traceback.format_exception_only(pilotlight.NestedRefused("circle: a > a.")))
    assert said.startswith("pilotlight.NestedRefused: circle: a > a. ")
