"""Each bet by its formula, and that none wins by chance more often than it may."""

from __future__ import annotations

import math
import random

import pytest

from pilotlight_gateway.judging.bets import (
    AMOUNT_STAKES,
    CRASH_RATES,
    EVENT_RATIOS,
    PAIR_STAKES,
    AmountBet,
    CrashBet,
    EventBet,
    PairBet,
    ProofBet,
    SplitBet,
    clipped,
    median,
    spread_of,
)  # fmt: skip


def test_an_event_bet_is_the_mean_of_likelihood_ratios() -> None:
    bet = EventBet()
    bet.note(1, 0.25)
    bet.note(0, 0.25)
    expected = [(ratio / (0.75 + 0.25 * ratio)) * (1.0 / (0.75 + 0.25 * ratio)) for ratio in EVENT_RATIOS]
    assert bet.e == pytest.approx(sum(expected) / len(expected))
    assert (bet.new, bet.old) == (1, 1)


def test_an_amount_bet_multiplies_by_how_far_a_call_is_off() -> None:
    bet = AmountBet()
    bet.note(1, 0.1, 0.5)
    bet.note(0, 0.1, -1.0)
    expected = [(1 + b * 0.9 * 0.5 / 0.9) * (1 + b * (-0.1) * -1.0 / 0.9) for b in AMOUNT_STAKES]
    assert bet.e == pytest.approx(sum(expected) / len(expected))


def test_a_proof_bet_is_the_mirror() -> None:
    bet = ProofBet(0.1)
    bet.note(1, 0.5, -1.0)
    assert bet.e == pytest.approx(1 + (0.1 + 0.4 + 0.8) / 3)
    bet.note(0, 0.5, -1.0)
    assert bet.e == pytest.approx(sum((1 + b) * (1 - b) for b in (0.1, 0.4, 0.8)) / 3)


def test_two_failures_in_a_row_of_a_healthy_function_are_an_alarm_and_many_good_calls_are_none() -> None:
    bet = CrashBet()
    for _ in range(2):
        bet.note(failed=True)
    assert bet.e == pytest.approx(sum((p / 0.02) ** 2 for p in CRASH_RATES) / 4)
    assert bet.e / 6 > 100
    calm = CrashBet()
    for _ in range(1_000):
        calm.note(failed=False)
    assert calm.e < 1.0


def test_pairs_are_judged_once_their_scale_is_known() -> None:
    bet, draw = PairBet(tolerance=0.0), random.Random(1)
    for _ in range(20):
        bet.note(100.0 * math.exp(draw.gauss(0, 0.05)), 100.0 * math.exp(draw.gauss(0, 0.05)))
    assert bet.e == 1.0
    scale = bet.scale
    assert 0.02 < scale < 0.2
    bet.note(103.0, 100.0)
    z = math.log(1.03) / (3 * scale)
    assert bet.e == pytest.approx(sum(1 + b * z for b in PAIR_STAKES) / len(PAIR_STAKES))


@pytest.mark.parametrize(("part", "alarm"), [(0.1, False), (0.15, True)])
def test_a_split_that_is_not_as_said_shows(part: float, alarm: bool) -> None:
    bet, draw = SplitBet(), random.Random(2)
    for number in range(6_000):
        rho = 0.05 if number < 1_000 else 0.1
        bet.note(int(draw.random() < (rho if number < 1_000 else part)), rho)
    assert (bet.e >= 100) is alarm
    assert len(bet.segments) == 1


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_where_only_one_side_has_calls_nothing_is_won(rho: float) -> None:
    event, amount, split = EventBet(), AmountBet(), SplitBet()
    event.note(1, rho)
    amount.note(1, rho, 1.0)
    split.note(1, rho)
    assert (event.e, amount.e, split.e) == (1.0, 1.0, 1.0)


def test_equal_sides_win_less_often_than_once_in_a_hundred() -> None:
    """Looked at after each call (Ville); 400 runs of 400 calls with a share that rises."""
    won, runs = 0, 400
    for seed in range(runs):
        draw, event, amount = random.Random(seed), EventBet(), AmountBet()
        for number in range(400):
            rho = (0.1, 0.25, 0.5)[number * 3 // 400]
            a = int(draw.random() < rho)
            amount.note(a, rho, clipped(draw.gauss(0.0, 0.33)))
            if draw.random() < 0.1:
                event.note(a, rho)
            if (event.e + amount.e) / 2 >= 100:
                won += 1
                break
    assert won <= 0.03 * runs


def test_medians() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert spread_of([1.0, 2.0, 9.0]) == 1.0
    assert (clipped(-3.0), clipped(0.5), clipped(3.0)) == (-1.0, 0.5, 1.0)
