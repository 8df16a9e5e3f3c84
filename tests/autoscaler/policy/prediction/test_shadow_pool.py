"""The method that would have cost least decides."""

from __future__ import annotations

from random import Random

import pytest

from pilotlight_autoscaler.policy.prediction.call_chances import MOST_KEPT
from pilotlight_autoscaler.policy.prediction.minute_methods import FixedWarmth, MinuteMethod
from pilotlight_autoscaler.policy.prediction.shadow_pool import (
    HALF_LIFE_MINUTES,
    LIKELY,
    NOTHING,
    MethodChoice,
    ShadowCost,
    ShadowPool,
)


class Decided:
    """A pool, and the choice for one worth; of an unknown function all methods cost the same."""

    def __init__(self, worth: float, window: int = 0, *priors: float) -> None:
        methods: dict[str, MinuteMethod] = {
            NOTHING: FixedWarmth(0),
            "kept-5": FixedWarmth(5),
            "kept-60": FixedWarmth(60),
        }
        self.pool = ShadowPool(methods, window)
        prior = dict.fromkeys(methods, ShadowCost())
        self.choice = MethodChoice(prior | {"kept-60": ShadowCost(*priors)} if priors else prior)
        self._worth = worth
        self._age = 0
        self.choice.choose(self.pool.costs, worth, 0)

    def observe(self, needed: list[int]) -> str:
        for each in needed:
            self.pool.observe(each)
            self._age += 1
            self.choice.choose(self.pool.costs, self._worth, self._age)
        return self.choice.chosen


def test_without_a_past_nothing_is_kept() -> None:
    """No method has cost anything; unless much is known of others."""
    assert Decided(10.0).choice.chosen == NOTHING
    assert Decided(10.0, 0, -5.0, 0.0).choice.chosen == "kept-60"


def test_calls_every_three_minutes_are_kept_if_a_start_is_worth_it() -> None:
    """Two minutes of idle time and a half buy one start."""
    calls = [1, 0, 0] * 200

    assert Decided(10.0).observe(calls) != NOTHING
    assert Decided(0.5).observe(calls) == NOTHING


def test_what_the_window_keeps_anyway_is_charged_to_nobody() -> None:
    """With a window of four minutes, five kept ones cost no more than nothing."""
    shadow = Decided(10.0, 4)
    assert shadow.observe([1, 0, 0] * 50) == NOTHING
    assert shadow.pool.costs["kept-5"].idle_minutes == 0.0
    assert shadow.pool.costs[NOTHING].cold < 1.0


def test_what_is_used_costs_half_a_minute_and_what_is_missing_a_start() -> None:
    """Whatever else was there."""
    shadow = ShadowPool({NOTHING: FixedWarmth(0), "kept-5": FixedWarmth(5)}, 0)
    for needed in (2, 3):
        shadow.observe(needed)
    assert abs(shadow.costs["kept-5"].idle_minutes - 1.0) < 0.01
    assert abs(shadow.costs["kept-5"].cold - 3.0) < 0.01
    assert abs(shadow.costs[NOTHING].cold - 5.0) < 0.01


def test_a_change_of_habits_changes_the_choice() -> None:
    """Older minutes count less: calls each three minutes for a day, then one a day."""
    shadow = Decided(10.0)
    assert shadow.observe([1, 0, 0] * 480) != NOTHING
    shadow.observe(([1] + [0] * 1439) * 4)
    assert shadow.pool.level(shadow.choice.chosen) == 0


def test_another_is_chosen_only_if_it_is_better_by_a_twentieth() -> None:
    """So that two that are alike do not take turns."""
    choice = MethodChoice({"a": ShadowCost(), "b": ShadowCost()}, "a")
    for cost, chosen in ((9.6, "a"), (9.4, "b")):
        choice.choose({"a": ShadowCost(10.0, 0.0), "b": ShadowCost(cost, 0.0)}, 0.0, 0)
        assert choice.chosen == chosen


@pytest.mark.parametrize(("cost", "chosen"), [(100.0, LIKELY), (70.0, LIKELY), (40.0, "b")])
def test_the_likely_one_is_chosen_unless_another_is_clearly_better(cost: float, chosen: str) -> None:
    """By a fifth and three cold starts, since the best of a dozen is so by luck, too."""
    choice = MethodChoice({LIKELY: ShadowCost(), "b": ShadowCost()})
    choice.choose({LIKELY: ShadowCost(100.0, 0.0), "b": ShadowCost(cost, 0.0)}, 10.0, 0)
    assert choice.chosen == chosen


def test_a_cost_is_idle_time_and_starts() -> None:
    """In idle minutes, by what a start is worth."""
    assert ShadowCost(3.0, 2.0).total(10.0) == 23.0


def test_times_to_live_are_as_each_would_say_alone() -> None:
    """Though the pool asks none of them: when each level was needed last is known once, also after a gap."""
    dice = Random(5)
    minutes = (0, 1, 3, 10, 240)
    alone = {f"kept-{each}": FixedWarmth(each) for each in minutes}
    pool = ShadowPool({name: FixedWarmth(each.minutes) for name, each in alone.items()}, 2)
    for minute in range(900):
        needed = dice.choice((0, 0, 0, 1, 2, 40)) if minute % 300 < 40 else 0
        assert pool.observe(needed) == [each.level() for each in alone.values()]
        for each in alone.values():
            each.observe(needed)
        if minute == 450:
            pool.skip(7)
            for each in alone.values():
                each.resume(pool.ages)
    assert ShadowPool({NOTHING: FixedWarmth(0)}, 0).ages == [None] * MOST_KEPT


def test_costs_of_long_ago_weigh_nothing_and_overflow_nothing() -> None:
    """What grows in place of their decay is bounded."""
    pool = ShadowPool({NOTHING: FixedWarmth(0)}, 0)
    pool.observe(8)
    for _ in range(round(HALF_LIFE_MINUTES) * 21):
        pool.observe(0)
    assert 0.0 < pool.costs[NOTHING].cold < 8 / 2**20
