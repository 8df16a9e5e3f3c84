"""The next minute's chance is near what comes, whatever law calls follow."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.prediction.call_chances import (
    DAY_MINUTES,
    LEVELS,
    MOST_KEPT,
    CallChances,
    least_odds,
)
from pilotlight_autoscaler.policy.prediction.idle_times import LONGEST_MINUTES, IdleTimes
from tests.example_counts import examples


def unknown() -> CallChances:
    return CallChances([IdleTimes() for _ in range(LEVELS)])


def warm(chances: CallChances, needed: list[int], worth: float) -> list[int]:
    """How many containers pay in each of these minutes, if a cold start is worth so many idle minutes."""
    found = []
    for each in needed:
        found.append(chances.warm(least_odds(worth)))
        chances.observe(each)
    return found


def charge(had: list[int], needed: list[int], worth: float) -> float:
    """In idle minutes, as a shadow pool charges."""
    used = [min(pair) for pair in zip(had, needed, strict=True)]
    return sum(h - u / 2 + worth * (n - u) for h, u, n in zip(had, used, needed, strict=True))


def test_before_the_first_call_nothing_is_likely() -> None:
    """Nor after a day without one."""
    chances = unknown()
    assert warm(chances, [0] * 10, 1e6) == [0] * 10
    chances.observe(1)
    assert chances.warm(least_odds(10.0)) == 1
    chances.skip(LONGEST_MINUTES)
    assert chances.warm(least_odds(1e6)) == 0


@pytest.mark.parametrize("worth", [0.0, 0.5])
def test_a_start_that_is_worth_nothing_is_not_prevented(worth: float) -> None:
    """A container that is used costs half a minute."""
    assert warm(unknown(), [1] * 100, worth) == [0] * 100


@pytest.mark.parametrize("worth", [5.0, 100.0])
def test_what_keeps_time_is_there_at_the_minute(worth: float) -> None:
    """A day later, and hardly at any other."""
    chances, hours = unknown(), ([1] + [0] * 59) * 24
    warm(chances, hours, worth)
    had = warm(chances, hours, worth)
    assert all(had[::60])
    assert sum(had) < 24 * 12


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.7])
def test_of_calls_at_random_it_is_as_good_as_who_knows_the_rate(rate: float) -> None:
    """Within a tenth: they keep a container always, or never."""
    dice = Random(7)
    needed = [int(dice.random() < rate) for _ in range(4 * DAY_MINUTES)]
    chances = unknown()
    warm(chances, needed[:DAY_MINUTES], 10.0)
    rest = needed[DAY_MINUTES:]
    known = min(charge([each] * len(rest), rest, 10.0) for each in (0, 1))
    assert charge(warm(chances, rest, 10.0), rest, 10.0) < 1.1 * known


def test_nights_are_known() -> None:
    """After a week in which calls come at random by day, a call in the night keeps a container for less time."""
    dice = Random(7)
    chances = unknown()
    for minute in range(7 * DAY_MINUTES):
        chances.observe(int(480 <= minute % DAY_MINUTES < 1_200 and dice.random() < 0.1))
    kept = [sum(warm(chances, [0] * 480, 50.0)), sum(warm(chances, [1] + [0] * 60, 50.0))]
    assert kept[0] <= 5
    assert kept[1] > 15


def test_each_level_of_concurrency_has_its_own_habits() -> None:
    """One container every minute, a second one every twenty."""
    chances = unknown()
    warm(chances, ([2] + [1] * 19) * 20, 5.0)
    had = warm(chances, [2] + [1] * 19, 5.0)
    assert min(had) == 1
    assert had[0] == 2
    assert had[10] == 1


def test_containers_are_bounded() -> None:
    """Those above the levels with a law of their own go by the last one's."""
    chances = unknown()
    warm(chances, [10 * MOST_KEPT] * 60, 10.0)
    assert chances.warm(least_odds(10.0)) == MOST_KEPT
    assert len(chances.levels()) == MOST_KEPT
    assert len(chances.laws()) == LEVELS


@examples(40)
@given(st.lists(st.integers(0, 6), max_size=200), st.floats(0.6, 1e3), st.floats(0.6, 1e3))
def test_a_start_that_is_worth_more_keeps_more(needed: list[int], one: float, other: float) -> None:
    """And who goes on from what was stored expects the same."""
    times = [IdleTimes() for _ in range(LEVELS)]
    chances = CallChances(times)
    for each in needed:
        chances.observe(each)
        less, more = (chances.warm(least_odds(worth)) for worth in sorted((one, other)))
        assert less <= more <= max(needed)

    stored = [IdleTimes(each.counts(), each.never) for each in times]
    again = CallChances(stored, chances.minute, chances.levels(), chances.laws())
    assert again.odds() == pytest.approx(chances.odds(), abs=1e-6)


def test_odds_of_a_worth_are_where_idle_time_and_starts_cost_the_same() -> None:
    """A minute in vain against half a one and no start."""
    odds = math.exp(least_odds(20.0))
    chance = odds / (1 + odds)
    assert (1 - chance) * 1.0 + chance * 0.5 == pytest.approx(chance * 20.0)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=80), st.integers(0, 3))
@examples(60)
def test_who_is_asked_seldom_says_the_same(needed: list[int], skipped: int) -> None:
    """A level that nobody asks about works its odds out when somebody does."""
    seldom, often = unknown(), unknown()
    for each in needed:
        often.odds()
        for chances in (seldom, often):
            chances.observe(each)
            chances.skip(skipped)
    assert seldom.odds() == often.odds()
    assert (seldom.levels(), seldom.laws()) == (often.levels(), often.laws())
