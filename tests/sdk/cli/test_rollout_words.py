"""What people say of a rollout."""

from __future__ import annotations

import pytest
import typer

from pilotlight.cli.rollout_words import read_headers, read_steps, read_tolerance


def test_steps_are_percent_that_rise() -> None:
    assert read_steps("0.5,5,100") == (0.5, 5.0, 100.0)


@pytest.mark.parametrize("text", ["", "5,5", "10,5", "0", "101", "nan", "a,b"])
def test_what_does_not_rise_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="rise"):
        read_steps(text)


def test_headers_and_tolerances() -> None:
    """Names of headers are the same in either case."""
    assert read_headers(["X-Beta=a=b"]) == {"x-beta": "a=b"}
    assert (read_tolerance(None), read_tolerance("5%")) == (None, 0.05)
