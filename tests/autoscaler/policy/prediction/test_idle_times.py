"""What is known of idle times says how likely a call is at an age."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.prediction.idle_times import DECAY, LONGEST_MINUTES, IdleTimes, bin_of
from tests.example_counts import examples


class Hazard(NamedTuple):
    """Of an age, by its bin alone and by all about it."""

    narrow: float
    wide: float


def learnt(*minutes: float) -> IdleTimes:
    """The idle times of a function that was idle for so long, one after the other."""
    times = IdleTimes()
    for each in minutes:
        times.observe(each)
    return times


def hazard(minutes: int, times: IdleTimes, prior_weight: float = 1.0) -> Hazard:
    known = times.at_age(minutes)
    return Hazard(known.narrow(prior_weight), known.wide(prior_weight))


def approximately(found: Hazard) -> object:
    return pytest.approx((found.narrow, found.wide))


def test_a_function_of_which_nothing_is_known_is_soon_called_or_hardly() -> None:
    """The longer it is idle, the less likely a call is; of a law that knows nothing the prior's weight says nothing."""
    chances = [hazard(age, IdleTimes()).narrow for age in (1, 3, 10, 60, 300, 1_400)]
    assert chances == sorted(chances, reverse=True)
    assert 0.1 < chances[0] < 0.5
    much = hazard(7, IdleTimes(), 3.0)
    assert (much.narrow, much.wide) == approximately(hazard(7, IdleTimes(), 0.1))


def test_what_is_called_every_hour_is_likely_at_the_hour() -> None:
    """By its bin alone at the minute, by those about it some minutes before and after, and not in between."""
    times = learnt(*[60] * 12)
    assert hazard(60, times, 0.3).narrow > 0.9
    assert hazard(57, times, 0.3).narrow < 0.01 < 0.05 < hazard(57, times, 0.3).wide
    assert hazard(30, times, 0.3).wide < 0.01
    assert hazard(30, times, 0.3).wide < hazard(30, times, 3.0).wide


def test_a_known_law_has_its_hazard() -> None:
    """One call in ten comes after two minutes, the others after one."""
    times = IdleTimes([(bin_of(1), 9.0), (bin_of(2), 1.0)])
    assert hazard(1, times, 1e-9).narrow == pytest.approx(0.9)
    assert hazard(2, times, 1e-9).narrow == pytest.approx(1.0)


def test_habits_change() -> None:
    """What is recent weighs more: a hundred idle times later an old habit is hardly known."""
    times = learnt(*[10] * 50, *[45] * 150)
    assert hazard(45, times).narrow > 0.9
    assert hazard(10, times).narrow < 0.15


def test_what_never_comes_again_is_not_likely() -> None:
    """Idle times of more than a day count as such."""
    assert hazard(5, learnt(*[LONGEST_MINUTES + 1] * 20)).narrow < hazard(5, IdleTimes()).narrow / 4


@examples(60)
@given(st.lists(st.integers(1, 2_000), max_size=60), st.integers(1, LONGEST_MINUTES))
def test_what_is_stored_is_what_was_known(minutes: list[int], age: int) -> None:
    """Counts and what never came, as weights of now; a hazard is a chance."""
    times = learnt(*minutes)
    found = hazard(age, times)
    assert 0 < found.narrow <= 1
    assert 0 < found.wide <= 1

    again = hazard(age, IdleTimes(times.counts(), times.never))

    assert (again.narrow, again.wide) == approximately(found)
    total = sum(count for _, count in times.counts()) + times.never
    assert total == pytest.approx((1 - DECAY ** len(minutes)) / (1 - DECAY))


def test_weights_stay_numbers() -> None:
    """However long it learns."""
    times = learnt(*[7] * 5_000)
    ((place, count),) = times.counts()
    assert place == bin_of(7)
    assert count == pytest.approx(1 / (1 - DECAY), rel=1e-6)
    assert hazard(7, times).narrow > 0.98
