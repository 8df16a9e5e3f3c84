"""What one call changes: what counts, what is left out, and what is one event."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, GuardTerms, RolloutTerms, Sticky
from pilotlight_gateway.judging.call_folding import fold_call
from pilotlight_gateway.judging.evidence import start
from pilotlight_gateway.judging.failures import LOST_S, MOST_HANGING
from pilotlight_gateway.judging.function_evidence import FunctionEvidence
from tests.builders.compared import FUNCTION, compared_call, compared_history, rollout_of


def judge(terms: RolloutTerms | None = None, **more: Any) -> FunctionEvidence:
    """Of a function with a history."""
    return start(rollout_of(terms), history=compared_history(), **more).functions[FUNCTION]


def folded(*calls: ComparedCall, terms: RolloutTerms | None = None, **more: Any) -> FunctionEvidence:
    evidence = judge(terms, **more)
    for call in calls:
        fold_call(evidence, call)
    return evidence


def canary(**fields: Any) -> ComparedCall:
    return compared_call(Arm.CANARY, **fields)


@pytest.mark.parametrize("fields", [{"is_cold": True}, {"nth_call": 7}, {"is_degraded": True}])
def test_a_unit_is_drawn_once_also_while_its_containers_are_fresh(fields: dict[str, Any]) -> None:
    """Else the first calls of a large tenant look as if calls did not come as they are split."""
    evidence = folded(*[canary(unit="u", **fields) for _ in range(100)], terms=RolloutTerms(sticky=Sticky.TENANT))
    assert evidence.split.counts == {0.5: [1, 1]}


def test_a_warm_call_is_bet_on_by_its_time_and_its_cost() -> None:
    """Both sides are counted."""
    evidence = folded(canary(), compared_call())

    assert evidence.calls == {"canary": 1, "twin": 1}
    assert (evidence.amounts["latency"].canary, evidence.amounts["cost"].other) == (1, 1)
    assert evidence.measured == 1


def test_slow_and_dear_calls_are_events() -> None:
    """Beyond the old version's p95, and p99."""
    evidence = folded(canary(execute_ms=9_000.0, gpu_ns=10**10), compared_call(execute_ms=1.0, gpu_ns=10**6))

    assert (evidence.events["slow"].canary, evidence.events["slow"].other) == (1, 0)
    assert (evidence.events["dear"].canary, evidence.events["dear"].other) == (1, 0)


@pytest.mark.parametrize("fields", [{"is_cold": True}, {"nth_call": 1}, {"nth_call": 20}])
def test_calls_of_fresh_containers_say_nothing_of_speed_but_their_failures_count(fields: dict[str, Any]) -> None:
    """A version that cannot load never gets beyond them."""
    evidence = folded(canary(execute_ms=9e4, **fields), canary(code="load_failed", **fields))

    assert evidence.amounts["latency"].canary == 0
    assert evidence.events["slow"].canary == 0
    assert evidence.events["errors"].canary == 1
    assert evidence.crash.canary == 1
    assert sum(evidence.left_out.values()) == 2


def test_the_21st_call_of_a_container_counts() -> None:
    """And so does one of which that is not known."""
    assert folded(canary(nth_call=21), canary(nth_call=0)).amounts["latency"].canary == 2


def test_pins_and_other_arms_are_not_compared() -> None:
    """Nor what was not drawn."""
    evidence = folded(compared_call(Arm.OUTSIDE), compared_call("another"), canary(rho=0.0))

    assert evidence.calls == {}
    assert evidence.split.e == 1.0
    assert evidence.crash.canary == 0


def test_a_fallback_is_an_event_of_its_own() -> None:
    """What it took says nothing of the version."""
    evidence = folded(canary(is_degraded=True, code="function_raised"))

    assert evidence.events["degraded"].canary == 1
    assert evidence.events["errors"].canary == 0
    assert evidence.amounts["latency"].canary == 0


@pytest.mark.parametrize("code", ["bad_input", "cancelled", "rate_limited", "preempted", "internal", "queue_full"])
def test_mistakes_of_callers_and_troubles_of_the_platform_are_no_errors(code: str) -> None:
    """Neither good nor bad."""
    evidence = folded(canary(code=code))

    assert evidence.events["errors"].canary == 0
    assert evidence.crash.e == 1.0


def test_a_callers_cancel_after_the_threshold_is_slow() -> None:
    """It has waited for it; before that it is nothing."""
    evidence = folded(canary(code="cancelled", execute_ms=9_000.0), canary(code="cancelled", execute_ms=5.0))

    assert evidence.events["slow"].canary == 1
    assert evidence.amounts["latency"].canary == 0


def test_the_death_of_a_container_is_one_event() -> None:
    """Whatever number of calls it had."""
    dead = [canary(code="container_died", container="c1", call_id=str(number)) for number in range(8)]
    evidence = folded(*dead, canary(code="container_died", container="c2"))

    assert evidence.events["errors"].canary == 2
    assert evidence.crash.canary == 2


def test_slow_is_known_before_a_call_ends_and_counts_once() -> None:
    """What is told of a call that runs still is no call of its own."""
    slow = {"execute_ms": 9_000.0, "call_id": "c"}
    evidence = folded(canary(is_running=True, **slow))
    assert evidence.events["slow"].canary == 1
    assert evidence.calls == {}

    fold_call(evidence, canary(is_running=True, **slow))
    fold_call(evidence, canary(**slow))
    assert evidence.events["slow"].canary == 1
    assert evidence.calls == {"canary": 1}

    fold_call(evidence, canary(is_running=True, execute_ms=5.0, call_id="d"))
    assert evidence.events["slow"].canary == 1


def test_a_call_of_a_sticky_unit_that_hangs_is_one_of_its_calls_before_it_ends() -> None:
    """At its end it says what else it took, and is no further call; a unit that hangs is bet on while it does."""
    terms = RolloutTerms(tolerance=0.0, sticky=Sticky.TENANT)
    hangs = [canary(unit="u", execute_ms=9_000.0, call_id=str(n)) for n in range(20)]
    evidence = folded(*[replace(call, is_running=True) for call in hangs[:10] + hangs[:10]], terms=terms)
    unit = evidence.units.units["u"]
    assert (unit.calls, unit.sums, unit.counts) == (10, {"slow": 10.0}, {"slow": 10})
    for call in hangs[:10]:
        fold_call(evidence, call)
    assert (unit.calls, unit.counts["slow"], unit.counts["latency"], evidence.told) == (10, 10, 10, {})
    for call in hangs[10:19]:
        fold_call(evidence, replace(call, is_running=True))
    assert evidence.amounts["slow"].canary == 0
    fold_call(evidence, replace(hangs[19], is_running=True, batch="c1/7"))

    assert (evidence.amounts["slow"].canary, evidence.amounts["latency"].canary) == (1, 1)
    assert evidence.amounts["slow"].e > 1.0
    assert evidence.calls == {"canary": 10}


def test_a_batch_that_hangs_is_slow_once() -> None:
    """Whoever tells of how many of its calls, and when they end: those that are told of late change nothing."""
    hangs: dict[str, Any] = {"batch": "c1/7", "execute_ms": 9_000.0}
    evidence = folded(*[canary(is_running=True, call_id=str(each), **hangs) for each in range(3)])
    assert evidence.events["slow"].canary == 1
    ended = [canary(batch_size=3, call_id=str(each), **hangs) for each in range(3)]
    for each in ended[:2]:
        fold_call(evidence, each)
    fold_call(evidence, canary(is_running=True, call_id="2", **hangs))
    fold_call(evidence, ended[2])

    assert evidence.events["slow"].canary == 1
    assert evidence.amounts["latency"].canary == 1
    assert (evidence.told, evidence.batches) == ({}, {})


def test_where_too_many_hang_the_rest_count_when_they_end() -> None:
    """None is forgotten, so none counts twice, until nobody will say any more that it has ended."""
    most = MOST_HANGING + 3
    calls = [canary(call_id=str(each), execute_ms=9_000.0) for each in range(most)]
    evidence = folded(*[replace(call, is_running=True) for call in calls])
    assert evidence.events["slow"].canary == MOST_HANGING
    for call in calls:
        fold_call(evidence, call)

    assert evidence.events["slow"].canary == most
    assert evidence.told == {}
    for call in calls:  # their gateway dies
        fold_call(evidence, replace(call, is_running=True))
    fold_call(evidence, canary(call_id="new", execute_ms=9_000.0, is_running=True, at=LOST_S + 1.0))
    assert list(evidence.told) == ["new"]


def test_what_ended_otherwise_is_not_remembered_as_hanging() -> None:
    """A fallback ran it, or the old version."""
    evidence = folded(canary(is_running=True, call_id="a", execute_ms=9_000.0))
    fold_call(evidence, canary(call_id="a", is_degraded=True))

    assert evidence.told == {}


def test_a_batch_is_one_observation_and_its_failure_one_event() -> None:
    """When all of its calls have come."""
    one = {"batch": "b", "batch_size": 3}
    evidence = folded(canary(**one), canary(**one))
    assert evidence.amounts["cost"].canary == 0
    fold_call(evidence, canary(**one))
    assert evidence.amounts["cost"].canary == evidence.amounts["latency"].canary == 1

    failed = folded(*[canary(batch="b", batch_size=3, code="function_raised") for _ in range(3)])
    assert failed.events["errors"].canary == 1
    slow = folded(*[canary(batch="b", batch_size=3, execute_ms=9e4) for _ in range(3)])
    assert slow.events["slow"].canary == 1


def test_batches_whose_calls_were_lost_are_bounded() -> None:
    """The oldest is taken as it is."""
    evidence = folded(*[canary(batch=str(number), batch_size=2) for number in range(300)])

    assert len(evidence.batches) == 128
    assert evidence.amounts["cost"].canary == 300 - 128


def test_a_batch_of_which_calls_are_missing_is_taken_as_it_is_after_a_while() -> None:
    """By the next one that comes."""
    evidence = folded(canary(batch="a", batch_size=2, at=1.0), canary(batch="b", batch_size=2, at=2.9))
    assert evidence.amounts["cost"].canary == 0
    fold_call(evidence, canary(batch="c", batch_size=2, at=3.1))

    assert evidence.amounts["cost"].canary == 1
    assert list(evidence.batches) == ["b", "c"]


def test_what_comes_late_of_a_batch_counts_once_if_it_failed_and_else_no_more() -> None:
    """Such as a call that the old version has run again."""
    late: dict[str, Any] = {"batch": "a", "batch_size": 4, "at": 9.0}
    evidence = folded(canary(batch="a", batch_size=4, at=1.0), canary(batch="b", batch_size=4, at=8.0))
    fold_call(evidence, canary(**late, execute_ms=9_000.0, is_running=True))
    fold_call(evidence, canary(**late, execute_ms=9_000.0))
    assert evidence.events["slow"].canary == evidence.events["errors"].canary == 0
    for _ in range(2):
        fold_call(evidence, canary(**late, code="function_raised"))

    assert list(evidence.batches) == ["b"]
    assert evidence.amounts["cost"].canary == 1
    assert (evidence.events["errors"].canary, evidence.crash.canary) == (1, 1)
    assert evidence.left_out == {"the rest of its batch is counted": 3, "its batch's failure is counted": 1}


def test_a_batch_whose_failure_was_counted_fails_no_more_later() -> None:
    """It was taken as it was meanwhile."""
    one: dict[str, Any] = {"batch": "a", "batch_size": 2, "code": "function_raised"}
    evidence = folded(canary(**one, at=1.0), canary(batch="b", batch_size=2, at=8.0), canary(**one, at=9.0))

    assert evidence.events["errors"].canary == 1


def test_an_error_of_one_side_of_a_pair_is_an_event_and_of_both_nobodys() -> None:
    """Pairs are drawn with one half."""
    evidence = folded(
        canary(pair="a", rho=0.0, code="function_raised"), compared_call(pair="a", rho=0.0),
        canary(pair="b", rho=0.0, code="function_raised"), compared_call(pair="b", rho=0.0, code="function_raised"),
        shadowed=(FUNCTION,),
    )  # fmt: skip

    assert (evidence.events["errors"].canary, evidence.events["errors"].other) == (1, 0)
    assert evidence.crash.canary == 1
    assert evidence.pairs.pairs == 0
    assert evidence.calls == {}


def test_answers_of_pairs_count_beyond_the_old_versions_own_disagreement() -> None:
    """Where both differ from the answer of before, nothing is said; it weighs only if that is asked for."""
    evidence = folded(
        canary(pair="a", differs=True), compared_call(pair="a", differs=True),
        canary(pair="b", differs=True), compared_call(pair="b"),
        shadowed=(FUNCTION,),
    )  # fmt: skip

    assert evidence.events["answers"].canary == 1
    assert evidence.pairs.pairs == 2
    assert evidence.weights["answers"] == 0.0


def test_starts_are_compared_when_both_sides_have_started_on_a_node_before() -> None:
    """The first one brings files there."""
    starts = [compared_call(is_cold=True, start_ms=1_000.0, container=f"t{n}", node="n1") for n in range(10)]
    evidence = folded(*starts, canary(is_cold=True, start_ms=9_000.0, container="c1", node="n1"))
    assert evidence.amounts["start"].canary == 0
    for _ in range(2):  # told twice, counted once
        fold_call(evidence, canary(is_cold=True, start_ms=9_000.0, container="c2", node="n1"))

    assert evidence.amounts["start"].canary == 1
    assert evidence.amounts["start"].e > 1.0


def test_times_to_tokens_are_compared_where_there_are_streams() -> None:
    """Once the old version's are known."""
    olds = [compared_call(first_ms=50.0, gap_ms=5.0) for _ in range(50)]
    slow = canary(first_ms=90.0, gap_ms=9.0)
    evidence = folded(*olds, slow, streaming=(FUNCTION,))

    assert evidence.amounts["ttft"].canary == evidence.amounts["itl"].canary == 1
    assert evidence.amounts["ttft"].e > 1.0
    assert "ttft" not in folded(*olds, slow).amounts


def test_custom_guards_bet_on_fields_of_answers() -> None:
    """Events and amounts; numbers that are none are not looked at."""
    terms = RolloutTerms(
        tolerance=0.0,
        guards=(GuardTerms(name="empty", kind="event", field="e"), GuardTerms(name="loss", kind="amount", field="l")),
    )
    olds = [compared_call(fields={"empty": 0.0, "loss": float(number % 7)}) for number in range(50)]
    evidence = folded(
        *olds,
        canary(fields={"empty": 1.0, "loss": 30.0}),
        canary(fields={"empty": float("nan"), "loss": float("inf")}),
        terms=terms,
    )

    assert evidence.events["empty"].canary == 1
    assert evidence.amounts["loss"].canary == 1
    assert evidence.amounts["loss"].e > 1.0


def test_a_sticky_unit_is_one_observation_of_everything() -> None:
    """Its failures are a part of its calls, and one alarm; a call without a unit counts by itself."""
    terms = RolloutTerms(tolerance=0.0, sticky=Sticky.TENANT)
    failing = [canary(unit="u", code="function_raised", call_id=str(number)) for number in range(20)]
    evidence = folded(*failing, terms=terms)
    assert evidence.amounts["errors"].canary == 1
    assert evidence.crash.canary == 1
    assert evidence.split.counts == {0.5: [1, 1]}

    fold_call(evidence, canary(code="function_raised", call_id="x"))
    assert evidence.amounts["errors"].canary == 2


def test_at_the_whole_share_only_the_alarm_on_failures_is_left() -> None:
    """Nothing is drawn any more."""
    evidence = folded(*[canary(rho=1.0, code="function_raised", call_id=str(n)) for n in range(3)])

    assert evidence.events["errors"].e == 1.0
    assert evidence.value() > 100.0


def test_the_tolerance_is_learnt_of_the_old_versions_containers_before_anything_is_compared() -> None:
    """With none that was asked for; then it stays."""
    olds = [
        compared_call(
            Arm.CONTROL, rho=0.0, container=f"c{n % 5}", nth_call=30, execute_ms=100.0 * (1.0 + 0.02 * (n % 5))
        )
        for n in range(400)
    ]
    evidence = start(rollout_of(RolloutTerms())).functions[FUNCTION]
    assert evidence.tolerance == 0.05
    for call in olds:
        fold_call(evidence, call)
    fold_call(evidence, compared_call())

    assert evidence.tolerance == pytest.approx(2.6 * 2.0**0.5 * 0.0304, rel=0.05)
    assert evidence.speeds is None
