"""The method that would have cost least decides."""

from __future__ import annotations

from pilotlight_autoscaler.policy.prediction.minute_methods import FixedWarmth, LearntWarmth, MinuteMethod
from pilotlight_autoscaler.policy.prediction.shadow_pool import NOTHING, ShadowCost, ShadowPool


def pool(window: int = 1) -> ShadowPool:
    methods: dict[str, MinuteMethod] = {
        NOTHING: FixedWarmth(0), "kept-5": FixedWarmth(5), "kept-60": FixedWarmth(60), "learnt": LearntWarmth(30.0),
    }  # fmt: skip
    return ShadowPool(methods, window)


def after(shadow: ShadowPool, needed: list[int], worth: float) -> ShadowPool:
    for each in needed:
        shadow.observe(each, worth)
    return shadow


def test_without_a_past_nothing_is_kept() -> None:
    """No method has cost anything."""
    assert pool().chosen == NOTHING
    assert pool().level() == 0


def test_calls_every_three_minutes_are_kept_if_a_start_is_worth_it() -> None:
    """Two minutes of idle time buy one start."""
    calls = [1, 0, 0] * 200

    assert after(pool(), calls, 10.0).chosen != NOTHING
    assert after(pool(), calls, 0.5).chosen == NOTHING


def test_what_the_window_keeps_anyway_is_charged_to_nobody() -> None:
    """With a window of four minutes, five kept ones cost no more than nothing."""
    shadow = after(pool(window=4), [1, 0, 0] * 50, 10.0)

    assert shadow.costs["kept-5"].idle_minutes == 0.0
    assert shadow.costs[NOTHING].cold < 1.0
    assert shadow.chosen == NOTHING


def test_a_change_of_habits_changes_the_choice() -> None:
    """Older minutes count less: calls each three minutes for a day, then none for four days but one a day."""
    shadow = after(pool(), [1, 0, 0] * 480, 10.0)
    assert shadow.chosen != NOTHING

    after(shadow, ([1] + [0] * 1439) * 4, 10.0)
    assert shadow.level() == 0


def test_a_cost_is_idle_time_and_starts() -> None:
    """In idle minutes, by what a start is worth."""
    assert ShadowCost(3.0, 2.0).total(10.0) == 23.0
