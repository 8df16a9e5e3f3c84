"""Bets on pairs of shadows."""

from __future__ import annotations

import math
import random

import pytest

from pilotlight_gateway.judging.guards.pair_guard import FIRST, STAKES, PairGuard


def test_the_first_pairs_are_not_judged_and_say_how_far_pairs_stray() -> None:
    """The spread is three times 1.4826 MAD."""
    guard = PairGuard()
    for number in range(FIRST):
        guard.note(math.exp(0.01 * (number - 9.5)), 1.0, 0.0)

    assert guard.e == 1.0
    assert guard.spread == pytest.approx(3 * 1.4826 * 0.05)


def test_a_pair_is_bet_on_as_the_formula_says() -> None:
    """z is the log ratio less the tolerance over the spread, clipped."""
    guard = PairGuard(pairs=FIRST, spread=0.3, ratios=[0.0] * FIRST)
    guard.note(math.exp(0.16), 1.0, 0.01)
    guard.note(9.0, 1.0, 0.01)

    assert guard.wealth == pytest.approx([(1 + b * 0.5) * (1 + b) for b in STAKES])


def test_half_of_the_bets_look_nearer() -> None:
    """At half of the spread: what is beyond that says no more. E is the mean of all bets."""
    guard = PairGuard(pairs=FIRST, spread=0.3, ratios=[0.0] * FIRST, near=[1.0] * len(STAKES))
    guard.note(math.exp(0.06), 1.0, 0.0)
    guard.note(math.exp(-0.2), 1.0, 0.0)

    far, near = [(1 + b * 0.2) * (1 - b * 2 / 3) for b in STAKES], [(1 + b * 0.4) * (1 - b) for b in STAKES]
    assert guard.wealth == pytest.approx(far)
    assert guard.near == pytest.approx(near)
    assert guard.e == pytest.approx(sum(far + near) / (2 * len(STAKES)))


@pytest.mark.parametrize(("stalls", "part"), [(0.0, 1.1), (0.1, 0.8)])
def test_looking_nearer_finds_more_where_machines_stall(stalls: float, part: float) -> None:
    """And about as much where they do not. An equal version reaches 100 no more often than it may."""
    both = sorted(pairs_until(1.03, seed, stalls=stalls) for seed in range(40))
    far = sorted(pairs_until(1.03, seed, stalls=stalls, near=False) for seed in range(40))

    assert both[20] < part * far[20]
    assert sum(pairs_until(1.0, seed, stalls=stalls, least=100.0) < 400 for seed in range(200)) <= 4


def test_a_dearer_fifth_of_inputs_is_found_too() -> None:
    """15 % on a fifth: most of it is beyond where half of the bets look."""
    draw, found = random.Random(3), []
    for _ in range(20):
        guard, pairs = PairGuard(near=[1.0] * len(STAKES)), 0
        while guard.e < 694.0 and pairs < 400:
            guard.note(math.exp(draw.gauss(0.14 * (draw.random() < 0.2), 0.05)), 1.0, math.log(1.01))
            pairs += 1
        found.append(pairs)
    assert sorted(found)[10] < 350


def test_the_spread_is_renewed_when_pairs_have_doubled() -> None:
    """At 20, 40, 80 and so on up to 640."""
    guard, seen, draw = PairGuard(), [], random.Random(1)
    for pair in range(1, 700):
        before = guard.spread
        guard.note(math.exp(draw.gauss(0.0, 0.1)), 1.0, 0.01)
        if guard.spread != before:
            seen.append(pair)

    assert seen == [20, 40, 80, 160, 320, 640]
    assert guard.ratios == []


def test_three_percent_are_found_soon_and_equal_versions_are_left_alone() -> None:
    """At 5 % noise and 1 % tolerance."""
    found = [pairs_until(1.03, seed) for seed in range(20)]
    assert sorted(found)[10] < 150
    assert [pairs_until(1.0, seed) for seed in range(20)] == [400] * 20


def pairs_until(ratio: float, seed: int, *, stalls: float = 0.0, near: bool = True, least: float = 694.0) -> int:
    """Pairs until it is one of seven guards that together reach 100, or has won `least`; 400: they do not.

    Of the shadows of either side the part `stalls` takes up to half as long again.
    """
    guard, draw = PairGuard(near=[1.0] * len(STAKES) if near else None), random.Random(seed)
    for pair in range(400):
        new, old = [1.0 + 0.5 * draw.random() * (draw.random() < stalls) for _ in range(2)]
        guard.note(ratio * new * math.exp(draw.gauss(0.0, 0.05)), old, math.log(1.01))
        if guard.e >= least:
            return pair
    return 400


def test_a_shadow_without_cost_is_no_pair() -> None:
    """Functions that use no GPU have none."""
    guard = PairGuard()
    guard.note(0.0, 1.0, 0.0)

    assert guard.pairs == 0
    assert guard.effect is None
