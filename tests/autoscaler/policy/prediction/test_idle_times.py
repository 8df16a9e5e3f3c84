"""A container is there when a call is likely enough, and at no other time."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.prediction.idle_times import (
    DECAY,
    LONGEST_MINUTES,
    IdleTimes,
    WarmWindow,
    bin_of,
    bins,
    warm_windows,
    worths_of,
)
from tests.example_counts import examples

WORTH = 20.0


def learnt(*minutes: float) -> IdleTimes:
    """The idle times of a function that was idle for so long, one after the other."""
    times = IdleTimes()
    for each in minutes:
        times.observe(each)
    return times


def windows(*minutes: float, worth: float = WORTH) -> tuple[WarmWindow, ...]:
    return warm_windows(learnt(*minutes).worths(), worth)


def warm_at(minute: float, found: tuple[WarmWindow, ...]) -> bool:
    return any(window.start <= minute <= window.end for window in found)


def test_an_unknown_function_is_kept_for_a_while() -> None:
    """As a fixed time to live would, and for longer the more a cold start is worth."""
    ends = [windows(worth=worth)[-1].end for worth in (5.0, 20.0, 100.0, 600.0)]
    assert all(less < more for less, more in pairwise(ends))
    assert all(warm_at(minute, windows(worth=100.0)) for minute in range(1, 30))
    assert windows(worth=0.5) == ()


def test_what_is_called_every_hour_is_there_every_hour() -> None:
    """From some minutes before, and not in between."""
    found = windows(*[60] * 12)
    assert all(warm_at(minute, found) for minute in (57, 60, 63))
    assert not any(warm_at(minute, found) for minute in (10, 20, 30, 40, 75, 100))


def test_two_habits_have_two_windows() -> None:
    """Which one interval between two quantiles would join."""
    found = windows(*[5, 120] * 10)
    assert all(warm_at(minute, found) for minute in (5, 120))
    assert not warm_at(40, found)


def test_habits_change() -> None:
    """What is recent weighs more: a hundred idle times later an old habit is hardly known."""
    before, after = [10] * 50, [45] * 150
    assert warm_at(45, windows(*before, *after))
    assert not warm_at(10, windows(*before, *after, worth=10.0))


def test_what_never_comes_again_is_not_kept_long() -> None:
    """Idle times of more than a day count as such."""
    kept = [sum(end - start for start, end in windows(*seen, worth=30.0)) for seen in ([], [LONGEST_MINUTES + 1] * 20)]
    assert kept[1] < kept[0] / 4


@examples(60)
@given(st.lists(st.integers(1, 2_000), max_size=40), st.floats(1.0, 500.0), st.floats(1.0, 500.0))
def test_a_cold_start_that_is_worth_more_buys_more(minutes: list[int], one: float, other: float) -> None:
    """Every minute that is bought for less is bought for more, too."""
    worths = learnt(*minutes).worths()
    less, more = (warm_windows(worths, worth) for worth in sorted((one, other)))
    for start, end in less:
        assert any(window.start <= start and end <= window.end for window in more)
    for found in (less, more):
        assert all(before.end < after.start for before, after in pairwise(found))


@examples(60)
@given(st.lists(st.integers(1, 2_000), max_size=60))
def test_what_is_stored_is_what_was_known(minutes: list[int]) -> None:
    """Counts and what never came, as weights of now."""
    times = learnt(*minutes)
    again = IdleTimes(times.counts(), times.never)
    assert again.worths() == pytest.approx(times.worths())
    total = sum(count for _, count in times.counts()) + times.never
    assert total == pytest.approx((1 - DECAY ** len(minutes)) / (1 - DECAY))


def test_weights_stay_numbers() -> None:
    """However long it learns."""
    times = learnt(*[7] * 5_000)
    ((place, count),) = times.counts()
    assert place == bin_of(7)
    assert count == pytest.approx(1 / (1 - DECAY), rel=1e-6)
    assert min(times.worths()) < 1.0


def test_a_known_law_buys_what_pays() -> None:
    """One call in ten comes after two minutes, the others after one: the worth at two is that of its own window."""
    masses = [0.0] * bins()
    masses[bin_of(1)], masses[bin_of(2)] = 9.0, 1.0
    worths = worths_of(masses, 0.0)
    assert worths[bin_of(1)] == pytest.approx((0.1 * 10 + 0.1 * 1) / 9)
    assert worths[bin_of(2)] == pytest.approx(0.2 * 1 / 1)
    assert worths[bin_of(30)] == math.inf


def test_what_is_near_a_habit_is_in_its_window() -> None:
    """And has none of its own, which would make that one twice as wide."""
    ((start, end),) = [window for window in windows(*[60] * 40) if window.end > 10]
    assert (start, end) == pytest.approx((54.0, 66.0))
