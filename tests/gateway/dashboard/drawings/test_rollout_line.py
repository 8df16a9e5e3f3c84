"""The steps of a rollout as a line."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from pilotlight_gateway.dashboard.drawings.rollout_line import rollout_line


def states(steps: tuple[float, ...], place: int, mark: str = "now") -> list[str]:
    return re.findall(r'<g class="([\w-]+)"><circle', rollout_line("d", steps, place, mark).inner)


@pytest.mark.parametrize(
    ("place", "mark", "found"),
    [
        (-1, "now", ["to-come"] * 4),
        (1, "held", ["done", "held", "to-come", "to-come"]),
        (3, "now", ["done", "done", "done", "now"]),
    ],
)
def test_what_is_done_where_it_is_and_what_is_to_come(place: int, mark: str, found: list[str]) -> None:
    assert states((5.0, 100.0), place, mark) == found


def test_it_is_told_in_words_too_and_another_place_is_another_shape() -> None:
    first, second = rollout_line("d", (0.5, 100.0), 0, "now"), rollout_line("d", (0.5, 100.0), 1, "back")
    assert first.label == "Steps: 0.5 %, 100 %, baking, promoted; at 0.5 %"
    assert second.label.endswith("; at 100 %, back")
    assert first.shape != second.shape


def test_many_steps_have_room_each() -> None:
    """It scrolls where there is less than that; without a step there are its ends."""
    many = rollout_line("d", tuple(float(one) for one in range(1, 21)), 3, "now")
    at = [int(one) for one in re.findall(r'cx="(\d+)"', many.inner)]
    assert min(b - a for a, b in pairwise(at)) >= 40
    assert many.scrolls
    assert many.width > at[-1]
    assert states((), 1) == ["done", "now"]
