"""How fast tokens come, as callers see it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_engine.serving.token_pace import (
    BETWEEN_WITHIN_S,
    FIRST_WITHIN_S,
    LEAST_FIRST,
    PaceFigures,
    TokenPace,
    bucket_of,
    time_of,
)


def near(seconds: float) -> Any:
    """Buckets are 5 % wide."""
    return pytest.approx(seconds, rel=0.051)


def run(pace: TokenPace, name: str, *, first_s: float, between_s: float, tokens: int, at: float = 0.0) -> float:
    """One sequence from `at` on; when it had its last token."""
    pace.admit(name, at, is_resumed=False)
    at += first_s
    pace.add_tokens([name], at)
    for _ in range(tokens - 1):
        at += between_s
        pace.add_tokens([name], at)
    return at


def test_the_first_token_and_those_after_it_are_told_apart() -> None:
    pace, at = TokenPace(), 0.0
    for number in range(LEAST_FIRST):
        at = max(at, run(pace, str(number), first_s=0.4, between_s=0.02, tokens=40))
        pace.remove(str(number))

    told = pace.figures(at)
    assert (told.first_s, told.between_s, told.waited_s) == (near(0.4), near(0.02), 0.0)


def test_few_tokens_say_nothing() -> None:
    pace = TokenPace()
    at = run(pace, "a", first_s=9.0, between_s=9.0, tokens=2)

    assert pace.figures(at) == PaceFigures()


def test_a_slow_one_among_twenty_is_not_what_is_told() -> None:
    pace = TokenPace()
    at = run(pace, "a", first_s=0.1, between_s=0.01, tokens=100)
    pace.add_tokens(["a"], at + 1.0)

    assert pace.figures(at + 1.0).between_s == near(0.01)


def test_tokens_that_come_together_share_their_time() -> None:
    """As those of an engine that tells several steps at once."""
    pace, at = TokenPace(), 0.0
    pace.admit("a", at, is_resumed=True)
    for _ in range(5):
        at += 0.4
        pace.add_tokens(["a"] * 4, at)

    assert pace.figures(at).between_s == near(0.1)


def test_what_hangs_is_seen_before_it_goes_on() -> None:
    """Sequences that have no token for longer than others count with that."""
    pace, at = TokenPace(), 0.0
    for number in range(30):
        at = max(at, run(pace, str(number), first_s=0.1, between_s=0.01, tokens=20))
    pace.admit("new", at, is_resumed=False)

    told = pace.figures(at + 3.0)
    assert told.waited_s == 3.0
    assert told.between_s == near(0.01)  # 30 that hang are few beside 570 tokens
    assert pace.figures(at + BETWEEN_WITHIN_S + 2).between_s == near(BETWEEN_WITHIN_S + 2)  # but all that is known now


def test_one_that_goes_on_here_had_its_first_token_elsewhere() -> None:
    pace = TokenPace()
    for number in range(LEAST_FIRST):
        pace.admit(str(number), 0.0, is_resumed=True)
        pace.add_tokens([str(number)], 5.0)

    assert pace.figures(5.0).first_s == 0.0


def test_what_is_long_ago_or_has_left_is_forgotten() -> None:
    pace, at = TokenPace(), 0.0
    for number in range(LEAST_FIRST):
        at = max(at, run(pace, str(number), first_s=0.4, between_s=0.02, tokens=20))
        pace.remove(str(number))
    pace.add_tokens(["nobody"], at)
    assert not pace.is_empty(at)

    later = at + FIRST_WITHIN_S + 2
    assert pace.is_empty(later)
    assert pace.figures(later) == PaceFigures()


@given(st.floats(min_value=2e-5, max_value=1e4))
def test_a_bucket_is_no_wider_than_a_twentieth(seconds: float) -> None:
    assert time_of(bucket_of(seconds)) == near(seconds)
    assert time_of(bucket_of(seconds)) >= seconds * 0.999999
