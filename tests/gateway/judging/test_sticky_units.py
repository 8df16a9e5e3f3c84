"""One bet for each sticky unit."""

from __future__ import annotations

import pytest

from pilotlight_gateway.judging.sticky_units import MOST_UNITS, UNIT_CALLS, StickyUnits


def calls(units: StickyUnits, unit: str, count: int, *, canary: bool, score: float, rho: float = 0.5) -> list[object]:
    """The bets of so many calls."""
    found: list[object] = []
    for _ in range(count):
        found += units.note(unit, canary=canary, rho=rho, scores={"latency": score})
    return found


def test_a_unit_is_bet_on_once_when_it_has_made_its_calls() -> None:
    """And never again."""
    units = StickyUnits()
    assert calls(units, "a", UNIT_CALLS - 1, canary=True, score=0.1) == []
    (bet,) = units.note("a", canary=True, rho=0.5, scores={"latency": 0.1})
    assert (bet.guard, bet.canary, bet.rho) == ("latency", True, 0.5)
    assert bet.score == pytest.approx(0.1 / 0.3354, abs=1e-4)

    assert calls(units, "a", 100, canary=True, score=0.1) == []


def test_a_unit_is_measured_against_its_own_calls_of_before() -> None:
    """A tenant whose inputs are large is slow on both sides."""
    units = StickyUnits()
    for _ in range(10):
        units.note_history("a", {"latency": 0.4})
    (bet,) = [bet for _ in range(UNIT_CALLS) for bet in units.note("a", canary=True, rho=0.5, scores={"latency": 0.4})]

    assert bet.score == pytest.approx(0.0)


def test_a_share_that_changes_on_the_way_makes_both_sides_begin_again() -> None:
    """Who stayed was drawn among those who stayed; who is on the canary's side already was not drawn again."""
    units = StickyUnits()
    calls(units, "old", 10, canary=False, score=0.0, rho=0.1)
    calls(units, "new", 10, canary=True, score=0.0, rho=0.1)

    assert calls(units, "new", 40, canary=True, score=0.0, rho=0.25) == []
    (bet,) = calls(units, "old", 21, canary=True, score=0.0, rho=0.25)
    assert bet.rho == pytest.approx(0.15 / 0.9)  # type: ignore[attr-defined]


def test_how_far_units_differ_is_learnt_of_the_old_versions() -> None:
    """By 20 of them."""
    units = StickyUnits()
    for number in range(20):
        calls(units, f"u{number}", UNIT_CALLS, canary=False, score=0.01 * number)
    (bet,) = calls(units, "last", UNIT_CALLS, canary=True, score=0.1112)

    assert bet.score == pytest.approx(0.5, abs=0.01)  # type: ignore[attr-defined]


def test_units_are_bounded_and_new_ones_are_told_apart() -> None:
    """Further ones are not judged, and not counted for the split."""
    units = StickyUnits()
    assert units.is_first("u0")
    for number in range(MOST_UNITS):
        units.note(f"u{number}", canary=True, rho=0.5, scores={})

    assert not units.is_first("u0")
    assert units.is_first("u1")
    assert not units.is_first("another")
    assert units.note("another", canary=True, rho=0.5, scores={"latency": 1.0}) == []
    assert len(units.units) == MOST_UNITS
