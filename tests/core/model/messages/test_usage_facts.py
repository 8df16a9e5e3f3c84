"""What a function may count of a call."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.messages.usage_facts import MOST_UNITS, CallUnit, units_fault


def test_closed_names_with_whole_numbers_are_units() -> None:
    """None at all, nothing of one, and the most that JSON has exactly."""
    assert units_fault({}) == ""
    assert units_fault(dict.fromkeys(CallUnit, MOST_UNITS)) == ""
    assert units_fault({"images": 0}) == ""


@pytest.mark.parametrize("count", [-1, MOST_UNITS + 1, 1.5, True, "3", None])
def test_another_number_is_refused_by_name(count: Any) -> None:
    """Before it is sent."""
    assert units_fault({"prompt_tokens": 1, "images": count}).startswith("images must be a whole number")


def test_another_name_is_refused_with_those_there_are() -> None:
    """A slip must not go onto a bill of its own."""
    assert units_fault({"tokens": 1}) == (
        "there is no unit 'tokens': expected some of prompt_tokens, completion_tokens, cached_tokens, images, seconds, "
        "custom"
    )
