"""Proofs that a version is not worse by a part."""

from __future__ import annotations

import random

import pytest

from pilotlight_gateway.judging.guards.proofs import PARTS, AmountProof, EventProof


def proven(slower: float, seed: int, calls: int = 2_500) -> float | None:
    """Within which part a version that is slower by a factor's logarithm is proven, by calls at one half."""
    proof, draw = AmountProof(), random.Random(seed)
    for _ in range(calls):
        canary = draw.random() < 0.5
        proof.note(canary=canary, rho=0.5, residual=draw.gauss(slower if canary else 0.0, 0.5), spread=1.5)
    return proof.within


def test_equal_versions_are_proven_within_a_tenth() -> None:
    """By some thousands of calls."""
    found = [proven(0.0, seed) for seed in range(12)]

    assert sum(within is not None and within <= 0.1 for within in found) >= 9


def test_a_version_that_is_worse_is_hardly_ever_proven_not_to_be() -> None:
    """+20 % is called less than that in less than one of twenty."""
    found = [proven(0.1823, seed, 1_500) for seed in range(20)]

    assert sum(within is not None and within <= 0.2 for within in found) <= 2


def test_what_is_within_a_small_part_is_within_larger_ones() -> None:
    """Bets on those are over."""
    proof = AmountProof()
    for _ in range(400):
        proof.note(canary=True, rho=0.5, residual=-1.5, spread=1.5)

    assert proof.within == PARTS[0]


def test_events_that_are_as_frequent_are_proven_within_a_half() -> None:
    """Only events count, so it takes many of them."""
    proof, draw = EventProof(), random.Random(2)
    for _ in range(600):
        proof.note(canary=draw.random() < 0.5, rho=0.5)

    assert proof.within is not None
    assert proof.within <= 0.5


def test_the_claim_that_is_true_is_worth_nothing_on_average() -> None:
    """Events of the canary are 1 + x times as frequent: the expectation of each factor is 1."""
    up, down = EventProof(), EventProof()
    up.note(canary=True, rho=0.3)
    down.note(canary=False, rho=0.3)
    for place, part in enumerate(PARTS):
        chance = 0.3 * (1 + part) / (0.7 + 0.3 * (1 + part))
        for won, lost in zip(up.wealth[place], down.wealth[place], strict=True):
            assert chance * won + (1 - chance) * lost == pytest.approx(1.0)


def test_calls_that_were_not_drawn_prove_nothing() -> None:
    """Neither amounts nor events."""
    amount, event = AmountProof(), EventProof()
    amount.note(canary=True, rho=1.0, residual=0.0, spread=1.0)
    event.note(canary=True, rho=1.0)

    assert amount == AmountProof()
    assert event == EventProof()
    assert event.within is None
