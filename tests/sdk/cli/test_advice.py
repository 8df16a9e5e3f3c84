"""What is wrong is answered in words of the command line."""

from __future__ import annotations

import re

import pytest

from pilotlight.cli.advice import advice, advising
from pilotlight.definitions.errors import NotConfigured, PilotlightError, TooMuch, Unreachable
from pilotlight_core.model.errors import CODES, error_from_code

OF_PROGRAMS = re.compile(r"\b(GET|POST|Retry-After|header|send|Send|Accept|Allow|application/json|Bearer)\b")


@pytest.mark.parametrize("code", CODES)
def test_nobody_is_told_to_send_a_request(code: str) -> None:
    """Whatever goes wrong."""
    assert not OF_PROGRAMS.search(advice(error_from_code(code, "no")))


def test_when_to_come_back_is_told() -> None:
    """Unless it is at once."""
    assert advice(TooMuch("no", retry_after=2.34)) == "Run the command again in 2.3 s."
    assert advice(TooMuch("no", retry_after=0.01)) == "Run the command again."


def test_errors_of_this_side_have_their_own_advice() -> None:
    """As where nothing answers."""
    assert "pilotlight up" in advice(Unreachable("no"))
    assert "PILOTLIGHT_URL" in advice(NotConfigured("no"))


def test_a_command_may_know_better() -> None:
    """For the codes that it names."""
    for code, expected in (("conflict", "Wait."), ("not_found", "Check the name.")):
        with pytest.raises(PilotlightError) as caught, advising(conflict="Wait."):
            raise error_from_code(code, "no")
        assert advice(caught.value) == expected
