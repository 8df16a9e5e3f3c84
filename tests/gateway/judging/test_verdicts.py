"""What evidence says, in words."""

from __future__ import annotations

import math
import random

from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutTerms
from pilotlight_gateway.judging.evidence import fold, start
from pilotlight_gateway.judging.verdicts import verdict_of
from tests.builders.compared import FUNCTION, compared_call, compared_calls, compared_history, rollout_of

HISTORY = compared_history()


def test_without_a_call_nothing_is_known() -> None:
    """No data is no success."""
    verdict = verdict_of(start(rollout_of()), 5.0)

    assert verdict.word == "undecided"
    assert verdict.sentences == ("No call was compared yet, so nothing is known.",)
    assert (verdict.evidence, verdict.at) == (1.0, 5.0)


def test_a_regression_is_explained_with_its_numbers() -> None:
    """The guard, the estimate, and the calls of both sides."""
    evidence = fold(start(rollout_of(), history=HISTORY), 1, compared_calls(1_500, 1, slower=1.3))
    verdict = verdict_of(evidence, 0.0)

    assert verdict.word == "regressed"
    assert verdict.evidence >= 100.0
    assert verdict.sentences[0].startswith("The new version is worse: E reached ")
    assert f"{verdict.calls['canary']:,} calls of the new version" in verdict.sentences[0]
    assert f"{FUNCTION}: time to run: +" in verdict.sentences[1]
    assert "calls of the new version and" in verdict.sentences[1]


def test_equal_versions_are_verified_within_a_part() -> None:
    """Each guard says within which."""
    evidence = fold(start(rollout_of(), history=HISTORY), 1, compared_calls(3_000, 2))
    verdict = verdict_of(evidence, 0.0)

    assert verdict.word == "verified"
    assert verdict.verified_within["latency"] <= 0.1
    assert any("verified within" in sentence for sentence in verdict.sentences)


def test_a_few_calls_prove_nothing() -> None:
    """What is not known is said."""
    verdict = verdict_of(fold(start(rollout_of()), 1, compared_calls(30, 2)), 0.0)

    assert verdict.word == "undecided"
    assert f"{FUNCTION}: nothing is known of time to run and GPU time yet." in verdict.sentences
    assert f"{FUNCTION}: up to 0.0% slower or dearer is tolerated." in verdict.sentences


def test_a_function_without_a_gpu_is_verified_by_its_times() -> None:
    """There is no cost to prove."""
    for_times = [compared_call(Arm.CONTROL, execute_ms=call.execute_ms, gpu_ns=0) for call in HISTORY]
    evidence = fold(start(rollout_of(), history=for_times), 1, compared_calls(2_500, 5, gpu_ns=0))

    assert verdict_of(evidence, 0.0).word == "verified"


def test_a_wrong_split_makes_the_verdict_invalid() -> None:
    """Nothing counted of it means anything."""
    evidence = fold(start(rollout_of(), history=HISTORY), 1, [compared_call(Arm.CANARY, rho=0.1)] * 40)
    verdict = verdict_of(evidence, 0.0)

    assert verdict.word == "invalid"
    assert verdict.sentences[0].startswith("Calls do not come as they are split")


def test_guards_of_several_functions_are_named_with_them() -> None:
    """So each has a name of its own."""
    rollout = rollout_of(control={"a": "1", "b": "2"}, canary={"a": "3", "b": "4"})

    assert {"a.cost", "b.cost"} <= set(verdict_of(start(rollout), 0.0).guards)


def test_each_kind_of_guard_says_what_it_has_seen() -> None:
    """Also of pairs, and of a rollout that is held."""
    evidence = start(rollout_of(RolloutTerms()), history=HISTORY, shadowed=(FUNCTION,))
    one = evidence.functions[FUNCTION]
    one.crash.e, one.pairs.e, one.events["slow"].e = 80.0, 20.0, 15.0
    evidence = fold(evidence, 1, [compared_call(Arm.CANARY, code="function_raised", also_failed=True)])
    said = "\n".join(verdict_of(evidence, 0.0).sentences)

    assert "from 10 the rollout does not go on" in said
    assert "where 2.0% would be no alarm" in said
    assert "not known yet in 0 pairs" in said
    assert "0 of the new version's calls, 0 of the old one's" in said
    assert "not compared, or in part: 1 (the old version failed on it too)" in said


def test_what_was_compared_names_pairs_and_calls() -> None:
    """Before the ramp there are pairs alone; one that failed was seen too, and half a pair was not."""
    evidence = start(rollout_of(RolloutTerms()), history=HISTORY, shadowed=(FUNCTION,))
    sides = [(Arm.CANARY, "1", ""), (Arm.TWIN, "1", ""), (Arm.CANARY, "2", "function_raised"), (Arm.TWIN, "2", "")]
    shadows = [compared_call(arm, rho=0.0, pair=pair, code=code) for arm, pair, code in sides]

    fold(evidence, 1, shadows[:1])
    assert verdict_of(evidence, 0.0).sentences[0] == "No call was compared yet, so nothing is known."
    fold(evidence, 2, shadows[1:])
    assert " after 2 pairs of shadows: " in verdict_of(evidence, 0.0).sentences[0]
    fold(evidence, 3, [compared_call(Arm.TWIN)])
    said = verdict_of(evidence, 0.0).sentences[0]
    assert " after 2 pairs of shadows, 0 calls of the new version and 1 of the old one: " in said


def test_pairs_prove_a_cost_within_less_than_live_calls_do() -> None:
    """Two hundred of them, within two percent."""
    evidence = start(rollout_of(RolloutTerms()), history=HISTORY, shadowed=(FUNCTION,))
    draw = random.Random(4)
    for number in range(300):
        for arm in (Arm.CANARY, Arm.TWIN):
            cost = int(1e8 * math.exp(draw.gauss(0.0, 0.03)))
            evidence = fold(evidence, 2 * number + (arm == Arm.TWIN) + 1, [
                compared_call(arm, rho=0.0, pair=str(number), gpu_ns=cost),
            ])  # fmt: skip

    assert verdict_of(evidence, 0.0).verified_within["pairs"] <= 0.05
    assert verdict_of(evidence, 0.0).word == "undecided"


def test_what_is_beyond_doubt_is_not_told_to_the_last_digit() -> None:
    evidence = fold(start(rollout_of(), history=HISTORY), 1, compared_calls(400, 1, fails=1.0))
    first, second = verdict_of(evidence, 0.0).sentences[:2]
    assert "E reached more than 1,000,000 (from 100" in first
    assert "(its e is more than 1,000,000)" in second
