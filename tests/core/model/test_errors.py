"""The tree of errors and the table of codes."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import CODES, FunctionRaised, PilotlightError, TooMuch, error_from_code


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_makes_an_error_that_says_what_to_do(code: str) -> None:
    """A code read off the wire gives an error of the tree with its status and advice."""
    error = error_from_code(code, "It went wrong.")

    assert isinstance(error, PilotlightError)
    assert error.wire_code == code
    assert 400 <= error.meaning.status < 600
    assert str(error) == f"It went wrong. {CODES[code].advice}"


def test_an_unknown_code_is_the_base_class() -> None:
    """A newer gateway never breaks an older client."""
    assert type(error_from_code("brand_new", "x")) is PilotlightError


def test_what_an_error_carries() -> None:
    """Retry-After and the remote traceback."""
    full = error_from_code("queue_full", "x", retry_after=1.5)
    raised = error_from_code("function_raised", "x", traceback="Traceback…")

    assert isinstance(full, TooMuch)
    assert full.retry_after == 1.5
    assert isinstance(raised, FunctionRaised)
    assert raised.remote_traceback == "Traceback…"


def test_only_codes_that_can_help_ask_for_a_retry() -> None:
    """What ran and failed is not repeated blindly by clients."""
    assert not CODES["function_raised"].retry
    assert not CODES["container_died"].retry
    assert not CODES["preempted"].retry
    assert all(CODES[code].retry for code in ("rate_limited", "queue_full", "no_capacity", "draining", "overloaded"))
