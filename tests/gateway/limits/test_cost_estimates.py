"""Estimates of the cost of a call."""

from __future__ import annotations

import pytest

from pilotlight_gateway.limits.cost_estimates import FIRST, MOST_KNOWN, Estimates
from pilotlight_gateway.limits.token_asks import TokenAsk


def test_an_estimate_follows_what_calls_cost() -> None:
    """The first known cost replaces the guess, later ones move it slowly."""
    costs = Estimates()
    assert costs.of("v1") == FIRST

    costs.learn("v1", 10.0)
    assert costs.of("v1") == 10.0
    costs.learn("v1", 20.0)
    assert costs.of("v1") == pytest.approx(11.0)


def test_the_number_of_known_versions_is_bounded() -> None:
    """The version that was learnt first is forgotten first."""
    costs = Estimates()
    for number in range(MOST_KNOWN):
        costs.learn(str(number), 1.0)
    costs.learn("0", 1.0)
    costs.learn("new", 1.0)

    assert (costs.of("0"), costs.of("new"), costs.of("1")) == (1.0, 1.0, FIRST)


def test_a_call_is_expected_to_take_what_it_asks_for() -> None:
    """Where it does not say how long its answer may be, or anything at all, as much as others took."""
    costs = Estimates()
    assert costs.tokens_asked("ver_1", None) == 0.0
    assert costs.tokens_asked("ver_1", TokenAsk(40, 100)) == 140.0
    costs.learn_tokens("ver_1", 90.0)
    assert [costs.tokens_asked("ver_1", ask) for ask in (None, TokenAsk(40, None), TokenAsk(200, None))] == [
        90.0, 90.0, 200.0,
    ]  # fmt: skip
    assert costs.tokens_asked("ver_1", TokenAsk(40, 0)) == 40.0
