"""Advice on errors, in the terms of the command line."""

from __future__ import annotations

import re

import pytest

from pilotlight.cli.advice import advice, advising
from pilotlight.definitions.errors import NotConfigured, PilotlightError, TooMuch, Unreachable
from pilotlight_core.model.errors import CODES, error_from_code

OF_PROGRAMS = re.compile(r"\b(GET|POST|Retry-After|header|send|Send|Accept|Allow|application/json|Bearer)\b")


@pytest.mark.parametrize("code", CODES)
def test_no_advice_is_about_requests(code: str) -> None:
    """No code's advice mentions a request, which a person does not send."""
    assert not OF_PROGRAMS.search(advice(error_from_code(code, "no")))


def test_advice_has_the_wait() -> None:
    """A wait that is too short to notice is left out."""
    assert advice(TooMuch("no", retry_after=2.34)) == "Run the command again in 2.3 s."
    assert advice(TooMuch("no", retry_after=0.01)) == "Run the command again."


def test_errors_of_this_side_have_their_own_advice() -> None:
    """An unreachable platform is an example."""
    assert "pilotlight up" in advice(Unreachable("no"))
    assert "PILOTLIGHT_URL" in advice(NotConfigured("no"))


def test_a_command_may_give_other_advice() -> None:
    """It replaces the advice of the codes that it names."""
    for code, expected in (("conflict", "Wait."), ("not_found", "Check the name.")):
        with pytest.raises(PilotlightError) as caught, advising(conflict="Wait."):
            raise error_from_code(code, "no")
        assert advice(caught.value) == expected
