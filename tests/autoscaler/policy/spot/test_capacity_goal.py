"""When a pool of spot machines needs a spare."""

from __future__ import annotations

from pilotlight_autoscaler.policy.spot.capacity_goal import HALF_LIFE_S, CapacityGoal

HOUR_S = 3_600.0


def test_a_spare_stands_by_while_the_goal_is_missed() -> None:
    """A gap of twenty minutes in a day is more than a hundredth of it; a day later it is not."""
    goal = CapacityGoal(0.99)
    goal.note(0.0, is_short=False)
    assert goal.spares == 0
    goal.note(20 * 60.0, is_short=True)
    assert goal.spares == 1
    goal.note(25 * HOUR_S, is_short=False)
    assert goal.spares == 0


def test_the_past_fades() -> None:
    """A bad month is no reason to pay for a spare for ever."""
    goal = CapacityGoal(0.9)
    goal.note(0.0, is_short=False)
    goal.note(HALF_LIFE_S, is_short=True)
    assert goal.share < 0.1
    goal.note(5 * HALF_LIFE_S, is_short=False)
    assert goal.share > 0.9


def test_an_instant_again_or_before_is_no_time() -> None:
    """Several things happen at one instant."""
    goal = CapacityGoal()
    for at in (10.0, 10.0, 5.0):
        goal.note(at, is_short=True)
    assert goal.share == 1.0
