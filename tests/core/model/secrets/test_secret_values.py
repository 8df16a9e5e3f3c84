"""What may be a secret's value."""

from __future__ import annotations

import pytest

from pilotlight_core.model.secrets.secret_values import (
    MOST_LINES,
    MOST_VALUE_BYTES,
    hidden_lines,
    value_fault,
    without_line_end,
)


@pytest.mark.parametrize("value", ["12345678", "a\nlonger one\n", "é" * 8, "x" * MOST_VALUE_BYTES])
def test_what_can_be_hidden_is_a_value(value: str) -> None:
    """A line of eight characters is enough."""
    assert value_fault(value) == ""


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "no line of 8"),
        ("longish", "no line of 8"),
        ("a\nb\nc\nd\ne", "no line of 8"),
        ("   longish   ", "no line of 8"),
        ("x" * (MOST_VALUE_BYTES + 1), "16385 bytes, 16384 are the most"),
        ("with \0 inside", "NUL"),
        ("with \ud800 inside", "UTF-8"),
        ("\n".join(["a line of it"] * (MOST_LINES + 1)), "65 lines, 64 are the most"),
    ],
)
def test_what_cannot_is_refused_with_the_reason(value: str, why: str) -> None:
    """And without a part of the value."""
    said = value_fault(value)

    assert why in said
    assert "longish" not in said


def test_lines_are_hidden_one_by_one() -> None:
    """A program prints them so; short ones stand in texts by chance."""
    assert hidden_lines("  first line \r\n}\nthe second\n") == ["first line", "the second"]


@pytest.mark.parametrize(
    ("read", "value"),
    [
        ("one line\n", "one line"),
        ("one line\r\n", "one line"),
        ("one line", "one line"),
        ("two\nlines\n", "two\nlines\n"),
        ("one line\n\n", "one line\n\n"),
    ],
)
def test_one_line_loses_its_end(read: str, value: str) -> None:
    """`echo` adds one; a file of several lines stays as it is."""
    assert without_line_end(read) == value
