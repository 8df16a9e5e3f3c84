"""Estimates of the cost of a call."""

from __future__ import annotations

import pytest

from pilotlight_gateway.limits.cost_estimates import FIRST, MOST_KNOWN, Estimates
from pilotlight_gateway.limits.token_asks import TokenAsk

F = "acme:shop.greet"


def test_an_estimate_follows_what_calls_cost() -> None:
    """The first known cost replaces the guess, later ones move it slowly."""
    costs = Estimates()
    assert costs.of("v1", F) == FIRST

    costs.learn("v1", F, 10.0)
    assert costs.of("v1", F) == 10.0
    costs.learn("v1", F, 20.0)
    assert costs.of("v1", F) == pytest.approx(11.0)


def test_the_number_of_known_versions_is_bounded() -> None:
    """The version that was learnt first is forgotten first."""
    costs = Estimates()
    for number in range(MOST_KNOWN // 2):
        costs.learn(str(number), f"of {number}", 1.0)
    costs.learn("0", "of 0", 1.0)
    costs.learn("new", "of new", 1.0)

    assert [costs.of(name, f"of {name}") for name in ("0", "new", "1")] == [1.0, 1.0, FIRST]


def test_a_call_is_expected_to_take_what_it_asks_for() -> None:
    """Where it does not say how long its answer may be, or anything at all, as much as others took."""
    costs = Estimates()
    assert costs.tokens_asked("ver_1", F, None) == 0.0
    assert costs.tokens_asked("ver_1", F, TokenAsk(40, 100)) == 140.0
    costs.learn_tokens("ver_1", F, 90.0)
    assert [costs.tokens_asked("ver_1", F, ask) for ask in (None, TokenAsk(40, None), TokenAsk(200, None))] == [
        90.0, 90.0, 200.0,
    ]  # fmt: skip
    assert costs.tokens_asked("ver_1", F, TokenAsk(40, 0)) == 40.0


def test_a_new_version_begins_with_what_the_one_before_it_took() -> None:
    """Until a call of its own has ended; of another function nothing is known."""
    costs = Estimates()
    costs.learn("v1", F, 40.0)
    costs.learn_tokens("v1", F, 300.0)
    assert (costs.of("v2", F), costs.tokens_of("v2", F)) == (40.0, 300.0)
    costs.learn("v2", F, 8.0)
    assert (costs.of("v2", F), costs.of("v1", F)) == (8.0, 40.0)
    assert (costs.of("v3", "acme:shop.other"), costs.tokens_of("v3", "acme:shop.other")) == (FIRST, 0.0)
