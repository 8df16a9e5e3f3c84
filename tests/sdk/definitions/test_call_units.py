"""Counting in a function: refused by name, harmless at home."""

from __future__ import annotations

import pytest

import pilotlight
from pilotlight import App, Misuse

app = App("counting")


@app.gpu_function
def count(images: int) -> int:
    """Count so many."""
    pilotlight.count_units(images=images)
    return images


def test_a_function_that_counts_runs_at_home() -> None:
    """Nobody pays there."""
    assert count.local(3) == 3


def test_a_slip_is_refused_with_its_name() -> None:
    """Where it is made, and with the units that there are."""
    with pytest.raises(Misuse, match=r"count_units\(\): images must be a whole number from 0 to 2\*\*53, not -3"):
        count.local(-3)
    with pytest.raises(Misuse, match="there is no unit 'token': expected some of prompt_tokens, completion_tokens"):
        pilotlight.count_units(token=1)
