"""The fast alarm on failures."""

from __future__ import annotations

import pytest

from pilotlight_gateway.judging.guards.crash_guard import RATES, CrashGuard


def healthy() -> CrashGuard:
    """Of a function whose history had no failure."""
    guard = CrashGuard()
    for _ in range(400):
        guard.note_other(failed=False)
    return guard


def test_failures_and_successes_are_bet_on_as_the_formula_says() -> None:
    """p / l, and (1 - p) / (1 - l), with l = 2 %."""
    guard = healthy()
    guard.note(failed=True)
    guard.note(failed=False)

    assert guard.wealth == pytest.approx([p / 0.02 * (1 - p) / 0.98 for p in RATES])


def test_three_failures_in_a_row_end_a_healthy_function() -> None:
    """Also as one of seven guards."""
    guard = healthy()
    for _ in range(3):
        guard.note(failed=True)

    assert guard.e > 700.0


def test_the_rate_that_is_no_alarm_follows_the_old_version() -> None:
    """Twice its own and one percent; a function of which little is known is believed to fail more."""
    assert healthy().rate == 0.02
    guard = CrashGuard(other=10, other_calls=400)
    assert guard.rate == pytest.approx(0.06)
    assert CrashGuard().rate == pytest.approx(0.11)


def test_an_outage_of_both_sides_is_no_alarm() -> None:
    """What the old version does just now counts."""
    guard = healthy()
    for _ in range(4):
        guard.note_other(failed=True)
    before = guard.e
    guard.note(failed=True)

    assert guard.rate >= 0.9
    assert guard.e == before


def test_a_bet_on_a_rate_that_would_be_no_alarm_rests() -> None:
    """Else a function that fails less than is allowed would win it."""
    guard = CrashGuard(other=40, other_calls=400)
    guard.note(failed=False)

    assert guard.wealth[:2] == [1.0, 1.0]
    assert guard.wealth[2] < 1.0


def test_a_failure_that_was_nobodys_is_taken_back() -> None:
    """With the factors that it had."""
    guard = healthy()
    factors = guard.factors(failed=True)
    guard.note(failed=True)
    guard.undo(factors)

    assert guard.wealth == pytest.approx([1.0] * 4)
    assert guard.canary == 0
