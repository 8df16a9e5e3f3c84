"""The fast alarm on failures."""

from __future__ import annotations

import pytest

from pilotlight_gateway.judging.guards.crash_guard import DOUBTED_S, MOST_BLAMED, MOST_DOUBTED, RATES, CrashGuard


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


def test_a_failure_in_doubt_counts_at_once_and_is_no_part_of_what_is_firm() -> None:
    """With the factors that it had when it was told; told again, it is the same."""
    guard, told = healthy(), healthy()
    told.note(failed=True)
    guard.note_doubted("a", 0.0, ())
    guard.note_doubted("a", 0.0, ())

    assert (guard.e, guard.firm_e, guard.failures, guard.canary) == (told.e, 1.0, 1, 0)
    guard.note(failed=False)
    told.note(failed=False)
    assert guard.e == pytest.approx(told.e)
    assert guard.firm_e < 1.0
    assert guard.resolve("a", failed=True)
    assert guard.wealth == pytest.approx(told.wealth)
    assert guard.failures == 1
    assert guard.e == guard.firm_e
    assert not guard.resolve("a", failed=True)


def test_a_failure_that_was_nobodys_leaves_no_bit() -> None:
    """Whatever came meanwhile, and whatever else is in doubt."""
    guard, never = healthy(), healthy()
    guard.note_doubted("a", 0.0, ("batch 1",))
    for one in (guard, never):
        one.note_doubted("b", 0.0, ("batch 1",))
        one.note(failed=False)
        one.note(failed=True)
        one.note_other(failed=True)
        one.note_doubted("c", 0.0, ())
    assert guard.resolve("a", failed=False)

    assert guard == never
    assert guard.failures == 3


def test_failures_of_one_cause_are_one_while_they_are_in_doubt_and_after() -> None:
    """The first that is left of them counts; if one counts for good, none of the others does."""
    guard = healthy()
    for call in ("a", "b", "c"):
        guard.note_doubted(call, 0.0, ("container c1",))
    once = guard.e
    assert guard.failures == 1
    guard.resolve("a", failed=False)
    assert guard.e == once
    guard.resolve("c", failed=True)
    assert (guard.e, guard.firm_e, guard.failures) == (once, once, 1)
    guard.resolve("b", failed=True)
    guard.note(failed=True, causes=("container c1", "batch c1/1"))
    assert (guard.e, guard.failures) == (once, 1)
    guard.note(failed=True, causes=("container c2",))
    assert guard.failures == 2


def test_doubts_are_bounded_by_number_and_time() -> None:
    """The oldest counts for good then, and so does one that nobody has answered."""
    guard = healthy()
    for number in range(MOST_DOUBTED + 1):
        guard.note_doubted(str(number), float(number), (str(number),))
    assert (len(guard.doubted), guard.canary) == (MOST_DOUBTED, 1)
    guard.settle(2.0 + DOUBTED_S)
    assert (guard.canary, guard.failures) == (2, MOST_DOUBTED + 1)
    guard.settle(1e9)
    assert (guard.doubted, guard.canary) == ([], MOST_DOUBTED + 1)
    assert guard.e == guard.firm_e
    for number in range(3 * MOST_BLAMED):
        guard.note(failed=True, causes=(str(number),))
    assert len(guard.blamed) == MOST_BLAMED
