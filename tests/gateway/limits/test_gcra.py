"""A bucket never gives more than its burst and what has returned since, in any window."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.limits.gcra import LONGEST_DEBT, PS, RateBucket, instant, rate

TICK = PS // 1024
"""Instants in the property test are multiples of it, which floats hold exactly."""


def test_a_burst_goes_at_once_and_then_one_comes_back_at_a_time() -> None:
    """Three go at once, the fourth waits for an interval, and `wait` is exactly that."""
    bucket = RateBucket(rate(2.0, 3.0), 0)
    step = bucket.rate.interval
    for _ in range(3):
        assert bucket.wait(step, 0) == 0
        bucket.take(step, 0)

    assert (bucket.wait(step, 0), bucket.standing(0)) == (PS // 2, (0, PS // 2))
    assert bucket.wait(step, PS // 2 - 1) == 1
    assert bucket.wait(step, PS // 2) == 0


def test_what_never_fits_takes_a_full_bucket() -> None:
    """Ten from a burst of three wait until the bucket is full, and are counted as three."""
    bucket = RateBucket(rate(1.0, 3.0), 0)
    bucket.take(bucket.rate.interval, 0)

    assert bucket.wait(10 * PS, 0) == PS
    assert bucket.take(10 * PS, PS) == 3 * PS
    assert bucket.standing(PS) == (0, PS)


def test_a_correction_is_a_debt_or_comes_back() -> None:
    """A dearer call delays the next one, a cheaper one lets it in at once."""
    bucket = RateBucket(rate(1.0, 1.0), 0)
    bucket.take(PS, 0)
    bucket.correct(2 * PS, 0)

    assert (bucket.wait(PS, 0), bucket.standing(0)) == (3 * PS, (0, 3 * PS))

    bucket.correct(-3 * PS, 0)
    assert (bucket.wait(PS, 0), bucket.standing(0)) == (0, (1, 0))


def test_a_debt_is_a_day_at_most() -> None:
    """A function may count 2**53 tokens: whoever called it waits a day, and a second such call adds nothing to that."""
    bucket = RateBucket(rate(1.0, 60.0), 0)
    for _ in range(2):
        bucket.correct(bucket.rate.length(2**53), 0)
    assert (bucket.wait(PS, 0), bucket.standing(0)) == (LONGEST_DEBT + PS, (0, LONGEST_DEBT + PS))

    bucket.change(rate(2.0, 60.0), 0)
    assert bucket.wait(PS // 2, 0) == (LONGEST_DEBT + PS) // 2


def test_another_rate_keeps_what_was_taken() -> None:
    """A larger burst is available less what was taken; a smaller one cuts off what it cannot hold."""
    bucket = RateBucket(rate(1.0, 10.0), 0)
    bucket.take(4 * PS, 0)
    bucket.change(rate(5.0, 100.0), 0)
    assert bucket.standing(0)[0] == 96

    bucket.change(rate(1.0, 2.0), 0)
    assert bucket.standing(0)[0] == 2


def test_a_smaller_burst_in_between_forgets_nothing() -> None:
    """It delays no call for what the larger one gave, either."""
    large, small = rate(1.0, 100.0), rate(1.0, 10.0)
    bucket = RateBucket(large, 0)
    bucket.take(100 * PS, 0)
    bucket.change(small, 0)
    assert bucket.standing(0) == (0, PS)

    bucket.change(large, 10 * PS)
    assert bucket.standing(10 * PS)[0] == 10


def test_grants_of_a_lost_home_are_not_repeated() -> None:
    """If it is not known what was taken, a larger burst fills with time."""
    bucket = RateBucket(rate(1.0, 10.0), 0, known=False)
    bucket.change(rate(1.0, 100.0), 0)
    assert bucket.standing(0)[0] == 10

    bucket.correct(5 * PS, 0)
    assert bucket.paid_at is None


@given(
    per_second=st.one_of(st.integers(1, 1000), st.floats(0.01, 1000)),
    burst=st.one_of(st.integers(1, 20), st.floats(1, 20)),
    asks=st.lists(st.tuples(st.integers(0, 3000), st.sampled_from([0.1, 1, 1, 1, 2.5, 7, 50])), max_size=60),
)
def test_no_window_gets_more_than_the_bound(per_second: float, burst: float, asks: list[tuple[int, float]]) -> None:
    """In exact arithmetic, every window w has taken <= burst + rate · w."""
    bucket = RateBucket(rate(per_second, burst), 0)
    at, taken = 0, []
    for pause, units in asks:
        at += pause * TICK
        length = bucket.rate.length(units)
        if bucket.wait(length, at) == 0:
            taken.append((at, Fraction(bucket.take(length, at), bucket.rate.interval)))
        else:
            assert bucket.wait(length, at + bucket.wait(length, at)) == 0

    for first, (begin, _) in enumerate(taken):
        total = Fraction(0)
        for end, given_out in taken[first:]:
            total += given_out
            assert total <= Fraction(burst) + Fraction(per_second) * Fraction(end - begin, PS)


def test_seconds_become_picoseconds() -> None:
    """The conversion is as exact as a float is."""
    assert instant(1.5) == 3 * PS // 2
