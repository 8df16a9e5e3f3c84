"""Bets on amounts."""

from __future__ import annotations

import math
import random

import pytest

from pilotlight_gateway.judging.guards.amount_guard import STAKES, AmountGuard, lever_of, scores_of


def test_the_factor_of_a_call_is_what_the_formula_says() -> None:
    """1 + b (a - rho) s / max(rho, 1 - rho)."""
    guard = AmountGuard()
    guard.note(canary=True, rho=0.5, score=0.5)
    guard.note(canary=False, rho=0.1, score=-0.9)

    assert guard.wealth == pytest.approx([(1 + b * 0.5) * (1 + b * 0.1) for b in STAKES])
    assert guard.e == pytest.approx(sum((1 + b * 0.5) * (1 + b * 0.1) for b in STAKES) / 6)


def test_a_tenth_puts_a_whole_score_at_stake_for_the_canary_and_a_ninth_for_the_others() -> None:
    """What both have at stake cancels."""
    assert lever_of(canary=True, rho=0.1) == pytest.approx(1.0)
    assert lever_of(canary=False, rho=0.1) == pytest.approx(-1 / 9)
    assert lever_of(canary=True, rho=0.9) == pytest.approx(1 / 9)


def test_a_score_is_within_one_and_the_tolerance_is_the_canarys_alone() -> None:
    """The residual, for the estimate, is before the tolerance."""
    assert scores_of(0.3, 1.5, canary=False, tolerance=0.1) == pytest.approx((0.2, 0.3))
    assert scores_of(0.3, 1.5, canary=True, tolerance=0.15) == pytest.approx((0.1, 0.3))
    assert scores_of(9.0, 1.5, canary=True, tolerance=0.1) == pytest.approx((1.0, 1.5))
    assert scores_of(-9.0, 1.5, canary=True, tolerance=0.1) == pytest.approx((-1.0, -1.5))


def test_the_estimate_is_the_ratio_of_both_sides() -> None:
    """By means of logarithms."""
    guard = AmountGuard()
    assert guard.effect is None
    for canary in (True, False, True, False):
        guard.note(canary=canary, rho=0.5, score=0.0, residual=math.log(1.2) if canary else 0.0)

    assert guard.effect == pytest.approx(0.2)


@pytest.mark.parametrize("rho", [0.1, 0.5])
def test_by_chance_amounts_reach_a_hundred_less_often_than_once_in_a_hundred(rho: float) -> None:
    """Ville's inequality for scores that drift: both sides are slower later."""
    draw, reached = random.Random(3), 0
    for _ in range(200):
        guard = AmountGuard()
        for call in range(300):
            score = max(-1.0, min(1.0, draw.gauss(call / 300, 0.3)))
            guard.note(canary=draw.random() < rho, rho=rho, score=score)
            if guard.e >= 100.0:
                reached += 1
                break

    assert reached <= 5


def test_a_bet_that_lost_everything_can_win_again() -> None:
    """Wealth stays within what a float holds."""
    guard = AmountGuard()
    for _ in range(2_000):
        guard.note(canary=True, rho=0.5, score=-1.0)
    assert min(guard.wealth) > 0.0
    for _ in range(4_000):
        guard.note(canary=True, rho=0.5, score=1.0)

    assert math.isfinite(guard.e)
    assert guard.e > 100.0
