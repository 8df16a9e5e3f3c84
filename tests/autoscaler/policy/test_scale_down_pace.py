"""Idle containers go by and by."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.scale_down_pace import STEP_EVERY_S, ScaleDownPace


@pytest.mark.parametrize(("size", "room"), [(1, 1), (10, 1), (20, 3), (100, 15)])
def test_a_step_is_a_small_part_and_one_at_least(size: int, room: int) -> None:
    """Of all that a version has."""
    assert ScaleDownPace().room("v", size, 0.0) == room


@pytest.mark.parametrize(("window_s", "next_s"), [(300.0, STEP_EVERY_S), (60.0, 60.0), (2.0, 2.0), (0.0, 0.0)])
def test_the_next_step_is_a_minute_later_or_the_window(window_s: float, next_s: float) -> None:
    """Which a version may have shorter."""
    pace = ScaleDownPace()
    pace.spend("v", window_s, 10.0)
    if next_s:
        assert pace.room("v", 10, 10.0 + next_s - 0.01) == 0
    assert pace.room("v", 10, 10.0 + next_s) == 1
    assert pace.room("other", 10, 10.0) == 1


def test_what_has_passed_is_forgotten() -> None:
    """So that versions that are gone take no room."""
    pace = ScaleDownPace()
    pace.spend("v", 60.0, 0.0)
    pace.forget(30.0)
    assert pace.room("v", 10, 30.0) == 0
    pace.forget(60.0)
    assert pace == ScaleDownPace()
