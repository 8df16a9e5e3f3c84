"""Bets on events."""

from __future__ import annotations

import math
import random

import pytest

from pilotlight_gateway.judging.guards.event_guard import RATIOS, EventGuard


def test_an_event_of_the_canary_multiplies_each_bet_by_what_the_formula_says() -> None:
    """At one half, a bet on twice as often wins 2 / 1.5; one of the old version loses 1 / 1.5."""
    guard = EventGuard()
    guard.note(canary=True, rho=0.5)

    assert guard.wealth == [ratio / (0.5 + 0.5 * ratio) for ratio in RATIOS]
    assert guard.e == pytest.approx(1.49043, abs=1e-5)

    guard.note(canary=False, rho=0.1)

    expected = [math.exp(math.log(r) - math.log(0.5 + 0.5 * r) - math.log(0.9 + 0.1 * r)) for r in RATIOS]
    assert guard.wealth == pytest.approx(expected)
    assert (guard.canary, guard.other) == (1, 1)


def test_one_event_is_worth_nothing_on_average() -> None:
    """With the probability rho it is the canary's: the expectation of each factor is 1."""
    for rho in (0.01, 0.1, 0.5, 0.95):
        won, lost = EventGuard(), EventGuard()
        won.note(canary=True, rho=rho)
        lost.note(canary=False, rho=rho)

        for up, down in zip(won.wealth, lost.wealth, strict=True):
            assert rho * up + (1 - rho) * down == pytest.approx(1.0)


def test_a_call_that_was_not_drawn_is_no_bet() -> None:
    """At a share of 0 or 1 nothing was left to chance."""
    guard = EventGuard()
    guard.note(canary=True, rho=1.0)
    guard.note(canary=True, rho=0.0)

    assert guard == EventGuard()


def test_by_chance_events_reach_a_hundred_less_often_than_once_in_a_hundred() -> None:
    """Ville's inequality, looked at after each of 300 events, in 400 runs whose share changes on the way."""
    draw, reached = random.Random(7), 0
    for _ in range(400):
        guard = EventGuard()
        for event in range(300):
            rho = (0.01, 0.1, 0.5)[event // 100]
            guard.note(canary=draw.random() < rho, rho=rho)
            if guard.e >= 100.0:
                reached += 1
                break

    assert reached <= 8
