"""Counting adds up, whole or not at all."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.running_code import add_units
from pilotlight_core.model.messages.usage_facts import MOST_UNITS


class Sink:
    def __init__(self, items: int = 0) -> None:
        self.items = items
        self.counted: list[dict[str, int]] | None = None


def test_counts_of_a_call_add_up() -> None:
    """By unit; nothing counted is nothing at all."""
    sink = Sink()
    assert sink.counted is None
    assert add_units(sink, {"images": 2}) == ""
    assert add_units(sink, {"images": 3, "custom": 0}) == ""

    assert sink.counted == [{"images": 5, "custom": 0}]


def test_counts_of_a_batch_are_lists() -> None:
    """One number for each item."""
    sink = Sink(2)
    assert add_units(sink, {"images": [1, 2], "custom": (3, 4)}) == ""
    assert add_units(sink, {"images": [1, 1]}) == ""

    assert sink.counted == [{"images": 2, "custom": 3}, {"images": 3, "custom": 4}]


@pytest.mark.parametrize(
    ("items", "counts", "why"),
    [
        (0, {"smiles": 1}, "there is no unit 'smiles'"),
        (0, {"images": -1}, "images must be a whole number"),
        (0, {"images": [1, 2]}, "images must be a whole number"),
        (0, {"images": MOST_UNITS}, "together images must be a whole number"),
        (2, {"images": 1}, "images must be a list"),
        (2, {"images": [1]}, "images must be a list"),
        (2, {"images": "12"}, "images must be a list"),
        (2, {"images": [1, 2.5]}, "images must be a whole number"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_added(items: int, counts: dict[str, object], why: str) -> None:
    """Also what was right beside it."""
    sink = Sink(items)
    assert add_units(sink, {"images": [1] * items if items else 1}) == ""
    before = sink.counted

    assert add_units(sink, {"custom": [1] * items if items else 1} | counts).startswith(why)
    assert sink.counted == before


def test_elsewhere_counts_are_only_checked() -> None:
    """Code that runs at home counts for nobody, and finds its slips all the same."""
    assert add_units(None, {"images": 1}) == ""
    assert add_units(None, {"smiles": 1}).startswith("there is no unit 'smiles'")
