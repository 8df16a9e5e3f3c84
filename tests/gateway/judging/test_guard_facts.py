"""What each guard has seen, as numbers."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.judging.evidence import decode_evidence, encode_evidence, fold, start
from pilotlight_gateway.judging.guard_facts import amount_effect, event_effect, guard_facts, pair_effect
from pilotlight_gateway.judging.guards.amount_guard import AmountGuard
from pilotlight_gateway.judging.guards.pair_guard import PairGuard
from tests.builders.compared import FUNCTION, compared_calls, compared_history, rollout_of


def test_a_regression_is_in_its_interval_and_what_is_equal_is_not_far() -> None:
    """The loudest guard is first; the counts are those of both sides."""
    evidence = fold(start(rollout_of(), history=compared_history()), 1, compared_calls(3_000, 1, slower=1.3))
    told = {one.guard: one for one in guard_facts(evidence)}
    latency, cost, calls = told["latency"], told["cost"], evidence.functions[FUNCTION].calls

    assert latency.low is not None
    assert latency.high is not None
    assert latency.effect is not None
    assert latency.low < 0.3 < latency.high
    assert latency.low < latency.effect < latency.high
    assert latency.high - latency.low < 0.2
    assert 0 <= calls[Arm.CANARY] - latency.canary < 10  # but for those that failed
    assert 0 <= calls[Arm.TWIN] - latency.other < 10
    assert latency.canary_of is None
    assert cost.low is not None
    assert cost.high is not None
    assert cost.low < 0.0 < cost.high
    first = guard_facts(evidence)[0]
    assert first.evidence == max(one.evidence for one in told.values())
    assert (first.function, told["slow"].about) == (FUNCTION, "calls slower than the old version's p95")
    assert told["slow"].canary_of == latency.canary


def test_events_are_counted_of_the_calls_that_could_be_one() -> None:
    evidence = fold(start(rollout_of(), history=compared_history()), 1, compared_calls(1_000, 2, fails=0.2))
    told = {one.guard: one for one in guard_facts(evidence)}
    calls = evidence.functions[FUNCTION].calls

    assert told["errors"].canary_of == calls[Arm.CANARY]
    assert told["errors"].other_of == calls[Arm.TWIN]
    assert told["errors"].canary > 50
    assert told["crash"].canary == told["errors"].canary
    assert (told["crash"].other, told["crash"].effect) == (0, None)  # of nothing there is no multiple


@pytest.mark.parametrize(
    ("counts", "effect"), [((20, 100, 10, 100), 1.0), ((5, 100, 10, 100), -0.5), ((5, 100, 0, 100), None)]
)
def test_the_effect_on_events_is_the_ratio_of_their_rates(
    counts: tuple[int, int, int, int], effect: float | None
) -> None:
    """Its interval is known also where one side had none."""
    found = event_effect(*counts)
    assert found.estimate == (None if effect is None else pytest.approx(effect))
    assert found.low is not None
    assert found.high is not None
    assert found.low < (effect if effect is not None else 5.0) < found.high


@pytest.mark.parametrize("counts", [(0, 100, 0, 100), (0, 0, 3, 100), (3, 100, 0, 0)])
def test_where_nothing_was_seen_nothing_is_said(counts: tuple[int, int, int, int]) -> None:
    assert event_effect(*counts) == (None, None, None)


def test_an_interval_is_that_of_two_means() -> None:
    """As the textbook has it, of logarithms."""
    guard = AmountGuard(canary_squares=0.0, other_squares=0.0)
    for canary, residual in ((True, 0.3), (True, 0.1), (False, -0.1), (False, 0.1), (False, 0.0)):
        guard.note(canary=canary, rho=0.5, score=residual, residual=residual)
    found = amount_effect(guard)
    reach = 1.96 * math.sqrt(0.02 / 2 + 0.01 / 3)
    assert found.estimate == pytest.approx(math.expm1(0.2))
    assert found.low == pytest.approx(math.expm1(0.2 - reach))
    assert found.high == pytest.approx(math.expm1(0.2 + reach))


def test_pairs_have_theirs_too() -> None:
    guard = PairGuard(squares=0.0)
    for number in range(60):
        guard.note(1.03 * (1.01 if number % 2 else 0.99), 1.0, 0.01)
    found = pair_effect(guard)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.03 < found.high
    assert found.high - found.low < 0.02


def test_evidence_of_a_release_that_kept_no_squares_has_no_interval() -> None:
    """Also after more calls: half of them would make it narrower than it is."""
    evidence = fold(start(rollout_of(), history=compared_history()), 1, compared_calls(400, 3))
    for guard in evidence.functions[FUNCTION].amounts.values():
        guard.canary_squares = guard.other_squares = None
    kept = decode_evidence(encode_evidence(evidence))
    assert kept is not None
    kept = fold(kept, 2, compared_calls(400, 4))
    (latency,) = [one for one in guard_facts(kept) if one.guard == "latency"]
    assert (latency.low, latency.high) == (None, None)
    assert latency.effect is not None
    assert pair_effect(replace(PairGuard(), pairs=60, total=1.0)).low is None
