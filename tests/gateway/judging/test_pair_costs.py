"""What a pair of shadows counts as: their code's own time, and of the rest what is usual."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutTerms
from pilotlight_gateway.judging.evidence import ROLL_BACK, fold, start
from pilotlight_gateway.judging.pair_costs import KEPT, LEAST, PairCosts
from pilotlight_gateway.judging.shadow_sides import ShadowSide
from tests.builders.compared import FUNCTION, compared_call, rollout_of

MS = 1e6


def side(cost_ms: float, code_ms: float, parts: int = 1) -> ShadowSide:
    return ShadowSide(
        canary=True, failed=False, ended_well=True, cost=cost_ms * MS / parts, differs=False, parts=parts,
        code=code_ms * MS / parts,
    )  # fmt: skip


def of_quiet_pairs(count: int, *, canary_rest: float = 1.0) -> PairCosts:
    costs = PairCosts()
    for _ in range(count):
        costs.counted(side(100.0 + canary_rest, 100.0), side(101.0, 100.0))
    return costs


def test_a_stall_beside_the_code_counts_as_what_is_usual() -> None:
    """On either side; all of it until it is known what is usual."""
    assert PairCosts().counted(side(151.0, 100.0), side(101.0, 100.0)) == (151.0 * MS, 101.0 * MS)
    costs = of_quiet_pairs(LEAST)
    assert costs.counted(side(151.0, 100.0), side(101.0, 100.0)) == pytest.approx((101.0 * MS, 101.0 * MS))
    assert costs.counted(side(101.0, 100.0), side(151.0, 100.0)) == pytest.approx((101.0 * MS, 101.0 * MS))


def test_what_a_version_always_does_beside_its_code_counts_in_full() -> None:
    """Such as larger answers: half of the shadows have it."""
    costs = of_quiet_pairs(LEAST, canary_rest=6.0)
    assert costs.counted(side(106.0, 100.0), side(101.0, 100.0)) == pytest.approx((106.0 * MS, 101.0 * MS))


@pytest.mark.parametrize("code_ms", [0.0, 250.0])
def test_where_the_codes_own_time_is_not_known_the_bill_counts_on_both_sides(code_ms: float) -> None:
    """Of an agent that does not say it, and where calls share a container: nothing is learnt of that either."""
    costs = of_quiet_pairs(LEAST)
    before = costs.rests
    assert costs.counted(side(151.0, code_ms), side(151.0, 100.0)) == (151.0 * MS, 151.0 * MS)
    assert costs.rests == before


def test_what_is_known_is_bounded_and_is_of_late() -> None:
    costs = of_quiet_pairs(KEPT)
    assert len(costs.rests) == KEPT
    for _ in range(KEPT):
        costs.counted(side(109.0, 100.0), side(109.0, 100.0))
    assert costs.counted(side(151.0, 100.0), side(101.0, 100.0)) == pytest.approx((109.0 * MS, 101.0 * MS))


def test_a_streams_rest_counts_by_its_tokens() -> None:
    """The rest is of the call, and not of each token."""
    costs = of_quiet_pairs(LEAST)
    found = costs.counted(side(151.0, 100.0, parts=10), side(101.0, 100.0, parts=10))
    assert found == pytest.approx((10.1 * MS, 10.1 * MS))


def pairs_until_back(ratio: float, seed: int, *, tells_code: bool, pairs: int = 300) -> int:
    """Pairs until a rollout goes back on a machine that stalls every eighth shadow for up to a third of a call beside
    its code; more than `pairs`: it does not.
    """
    draw = random.Random(seed)
    evidence = start(rollout_of(RolloutTerms()), shadowed=(FUNCTION,))
    for pair in range(pairs):
        for arm in (Arm.CANARY, Arm.TWIN):
            code = 1e8 * (ratio if arm == Arm.CANARY else 1.0) * math.exp(draw.gauss(0.0, 0.035))
            rest = 1e6 + (draw.random() * 33e6 if draw.random() < 0.125 else 0.0)
            call = compared_call(arm, rho=0.0, pair=str(pair), gpu_ns=int(code + rest))
            if tells_code:
                call = msgspec.structs.replace(call, code_ns=int(code))
            fold(evidence, evidence.seq + 1, [call])
        if evidence.peak >= ROLL_BACK:
            return pair + 1
    return pairs + 1


def test_three_percent_are_found_on_a_machine_that_stalls() -> None:
    """Sooner than by what is billed alone; equal versions are left alone."""
    known = sorted(pairs_until_back(1.03, seed, tells_code=True) for seed in range(20))
    billed = sorted(pairs_until_back(1.03, seed, tells_code=False) for seed in range(20))
    assert known[18] <= 300
    assert known[10] < 0.8 * billed[10]
    assert [pairs_until_back(1.0, seed, tells_code=True) for seed in range(20)] == [301] * 20
