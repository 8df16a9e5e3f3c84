"""How a rollout moves on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import WHOLE, Arm, Rollout, RolloutState, RolloutTerms
from pilotlight_gateway.judging.decisions import (
    DRAIN_S,
    HEARD_S,
    NO_CAPACITY_S,
    PAIRS_S,
    QUIET_S,
    Action,
    DecisionFacts,
    RolloutDecision,
    decide,
)
from pilotlight_gateway.judging.evidence import Evidence, fold, start
from tests.builders.compared import FUNCTION, compared_call, compared_calls, compared_history, rollout_of

HISTORY = compared_history()
READY = DecisionFacts(checks="", is_ready=True)
TERMS = RolloutTerms(steps=(100, 1_000, WHOLE), every_s=300.0, calls=10, tolerance=0.0)


def seen(rollout: Rollout, calls: Iterable[ComparedCall] = (), **more: Any) -> Evidence:
    return fold(start(rollout, history=HISTORY, **more), 1, calls)


def few(count: int = 20) -> list[ComparedCall]:
    """Canary's calls that are as the old version's."""
    return [compared_call(arm, at=1.0, call_id=f"{arm}{n}") for n in range(count) for arm in (Arm.CANARY, Arm.TWIN)]


def failing(count: int = 4) -> list[ComparedCall]:
    return [compared_call(Arm.CANARY, code="function_raised", call_id=str(n), at=1.0) for n in range(count)]


def moved_to(decision: RolloutDecision) -> Rollout:
    assert decision.action is Action.MOVE
    assert decision.rollout is not None
    return decision.rollout


def test_a_rollout_goes_through_its_states_to_its_end() -> None:
    """Planned, checking, starting, each step, baking, promoted."""
    rollout, at, states = rollout_of(TERMS, state=RolloutState.PLANNED, step=-1, share=0, twin_share=0), 0.0, []
    evidence = seen(rollout)
    for seq in range(2, 40):
        decision = decide(evidence, rollout, at, READY)
        if decision.action is Action.PROMOTE:
            break
        if decision.action is Action.MOVE:
            rollout = moved_to(decision)
            states.append((rollout.state.value, rollout.share, rollout.twin_share))
        at += 301.0
        evidence = fold(evidence, seq, few())

    assert states == [
        ("checking", 0, 0),
        ("starting", 0, 0),
        ("ramp", 100, 100),
        ("ramp", 1_000, 1_000),
        ("baking", 9_500, 500),
    ]
    assert decision.action is Action.PROMOTE
    assert decision.reason == "verified"
    ended = decide(evidence, rollout, at, replace(READY, is_promoted=True))
    assert (ended.action, ended.state, ended.news[0].kind) == (
        Action.END, RolloutState.PROMOTED, "rollout.promoted",
    )  # fmt: skip


def test_a_check_that_fails_calls_it_back_without_a_mark() -> None:
    """And until it is done nothing happens."""
    rollout = rollout_of(TERMS, state=RolloutState.CHECKING)

    assert decide(seen(rollout), rollout, 0.0, DecisionFacts()).action is Action.STAY
    decision = decide(seen(rollout), rollout, 0.0, DecisionFacts(checks="The input of f is narrower."))
    assert (decision.action, decision.marked, decision.reason) == (
        Action.ROLL_BACK, False, "The input of f is narrower.",
    )  # fmt: skip


def test_a_step_is_left_when_its_time_and_its_calls_are_over() -> None:
    """Not before five minutes, and not on too few calls."""
    rollout = rollout_of(TERMS)
    assert decide(seen(rollout, few()), rollout, 299.0, READY).action is Action.STAY
    held = moved_to(decide(seen(rollout, few(5)), rollout, 301.0, READY))
    assert (held.held, held.share) == ("calls", 100)

    after = moved_to(decide(seen(rollout, few()), rollout, 301.0, READY))
    assert (after.step, after.share, after.twin_share, after.since, after.calls_before) == (1, 1_000, 1_000, 301.0, 20)


def test_calls_of_earlier_steps_are_not_counted_for_this_one() -> None:
    """It has to have its own."""
    rollout = rollout_of(TERMS, calls_before=15)

    assert moved_to(decide(seen(rollout, few()), rollout, 301.0, READY)).held == "calls"


def test_a_quiet_function_needs_its_share_of_an_hours_calls() -> None:
    """At 200 calls an hour a share of 1 % has two."""
    rollout = rollout_of(TERMS)

    assert moved_to(decide(seen(rollout, few(3)), rollout, 301.0, replace(READY, calls_per_hour=200.0))).step == 1
    assert moved_to(decide(seen(rollout), rollout, 301.0, replace(READY, calls_per_hour=20.0))).held == "calls"


def test_from_a_hundred_it_is_rolled_back_in_every_state_and_marked() -> None:
    """Also while it is paused, or waits for its gate."""
    for state in (RolloutState.PAIRS, RolloutState.RAMP, RolloutState.BAKING):
        rollout = rollout_of(TERMS, state=state, paused_by="somebody", held="gate")
        decision = decide(seen(rollout, failing()), rollout, 0.0, READY)

        assert (decision.action, decision.marked) == (Action.ROLL_BACK, True)
        assert decision.reason.startswith("The new version is worse: E reached ")
        assert decision.verdict.word == "regressed"
        assert decision.news[0].kind == "rollout.rolled_back"


def test_from_ten_it_is_held_until_e_was_low_for_ten_minutes() -> None:
    """A step has its time then already."""
    terms = replace(TERMS, weights={"crash": 0.2})
    rollout = rollout_of(terms)
    evidence = seen(rollout, failing(2))
    assert 10.0 <= evidence.value < 100.0
    held = moved_to(decide(evidence, rollout, 400.0, READY))
    assert (held.held, held.held_since) == ("evidence", 400.0)
    assert decide(evidence, held, 401.0, READY).action is Action.STAY

    low = fold(evidence, 2, few(100))
    assert low.value < 10.0
    assert decide(low, held, QUIET_S, READY).action is Action.STAY
    assert moved_to(decide(low, held, QUIET_S + 3.0, READY)).step == 1


def test_a_wrong_split_holds_it() -> None:
    """Whatever the other guards say."""
    rollout = rollout_of(TERMS)
    wrong = [compared_call(Arm.CANARY, rho=0.1, call_id=str(n)) for n in range(60)]

    assert moved_to(decide(seen(rollout, wrong), rollout, 301.0, READY)).held == "invalid_split"


def test_a_share_rises_only_as_far_as_capacity_carries_it() -> None:
    """The step's time begins when it is whole."""
    rollout = rollout_of(TERMS)
    some = moved_to(decide(seen(rollout, few()), rollout, 301.0, replace(READY, carried=400)))
    assert (some.step, some.share, some.held) == (1, 400, "no_capacity")

    more = moved_to(decide(seen(rollout, few()), some, 350.0, replace(READY, carried=700)))
    assert (more.share, more.twin_share, more.held) == (700, 700, "no_capacity")
    less = decide(seen(rollout, few()), more, 360.0, replace(READY, carried=100))
    assert less.action is Action.STAY
    whole = moved_to(decide(seen(rollout, few()), more, 400.0, READY))
    assert (whole.share, whole.held, whole.since) == (1_000, "", 400.0)


def test_a_share_does_not_rise_within_its_step_while_e_is_high() -> None:
    """More calls of a version that may be worse are not wanted."""
    rollout = rollout_of(replace(TERMS, weights={"crash": 0.2}), step=1, share=400)

    after = moved_to(decide(seen(rollout, failing(2)), rollout, 301.0, READY))
    assert (after.share, after.held) == (400, "evidence")


@pytest.mark.parametrize("state", [RolloutState.STARTING, RolloutState.RAMP])
def test_without_capacity_for_ten_minutes_it_is_called_back_without_a_mark(state: RolloutState) -> None:
    """It is nobody's fault."""
    rollout = rollout_of(TERMS, state=state, step=1, share=100, held="no_capacity", held_since=50.0)
    short = DecisionFacts(carried=100)

    assert decide(seen(rollout), rollout, 49.0 + NO_CAPACITY_S, short).action is Action.STAY
    decision = decide(seen(rollout), rollout, 50.0 + NO_CAPACITY_S, short)
    assert (decision.action, decision.marked) == (Action.ROLL_BACK, False)
    assert decide(seen(rollout), rollout, 50.0 + NO_CAPACITY_S, READY).action is Action.MOVE


def test_an_old_version_without_containers_may_only_not_have_been_heard_of_yet() -> None:
    """One that starts just now has calls that wait for it: nothing moves before nodes had their time to say so."""
    terms = replace(TERMS, pairs=0)
    rollout = rollout_of(terms, state=RolloutState.STARTING, step=-1, share=0, twin_share=0, since=0.0)
    unheard = replace(READY, has_containers=False)
    assert decide(seen(rollout), rollout, HEARD_S - 0.1, unheard).action is Action.STAY
    assert moved_to(decide(seen(rollout), rollout, HEARD_S, unheard)).state is RolloutState.RAMP


def test_pairs_come_first_where_there_can_be_any() -> None:
    """Until there are enough, or their time is over."""
    terms = replace(TERMS, pairs=2)
    rollout = rollout_of(terms, state=RolloutState.STARTING, step=-1, share=0, twin_share=0)
    paired = moved_to(decide(seen(rollout), rollout, 0.0, replace(READY, has_shadows=True)))
    assert (paired.state, paired.share) == (RolloutState.PAIRS, 0)

    none = seen(rollout, shadowed=(FUNCTION,))
    assert decide(none, paired, 10.0, READY).action is Action.STAY
    assert moved_to(decide(none, paired, PAIRS_S, READY)).state is RolloutState.RAMP
    both = [compared_call(arm, pair=str(n), rho=0.0) for n in range(2) for arm in (Arm.CANARY, Arm.TWIN)]
    assert moved_to(decide(seen(rollout, both, shadowed=(FUNCTION,)), paired, 10.0, READY)).share == 100


def test_a_breaker_that_opens_ends_it() -> None:
    """The version keeps failing."""
    rollout = rollout_of(TERMS)
    decision = decide(seen(rollout), rollout, 0.0, replace(READY, breaker="answer"))

    assert (decision.action, decision.marked) == (Action.ROLL_BACK, True)


def test_a_person_who_pauses_or_freezes_it_wins() -> None:
    """A paused one goes on nowhere; a frozen one is not rolled back either."""
    paused = rollout_of(TERMS, paused_by="somebody")
    assert decide(seen(paused, few()), paused, 900.0, READY).action is Action.STAY

    frozen = rollout_of(TERMS, frozen=True)
    held = moved_to(decide(seen(frozen, failing()), frozen, 900.0, replace(READY, breaker="answer")))
    assert (held.held, held.state) == ("frozen", RolloutState.RAMP)
    assert decide(seen(frozen, failing()), held, 901.0, READY).action is Action.STAY


def test_a_gate_has_to_say_yes() -> None:
    """Neither no answer nor a no is one."""
    rollout = rollout_of(replace(TERMS, gate="https://gate"))
    for gate in (None, False):
        assert moved_to(decide(seen(rollout, few()), rollout, 301.0, replace(READY, gate=gate))).held == "gate"
    assert moved_to(decide(seen(rollout, few()), rollout, 301.0, replace(READY, gate=True))).step == 1


@pytest.mark.parametrize("state", [RolloutState.PAIRS, RolloutState.RAMP, RolloutState.BAKING])
def test_what_a_policy_refuses_by_now_goes_on_nowhere_and_is_not_ended(state: RolloutState) -> None:
    """Neither to the rest of its step, nor to the next one, nor into service; a regression still rolls it back."""
    facts = replace(READY, refused="A policy refuses it.")
    for share in (50, 100):
        rollout = rollout_of(TERMS, state=state, share=share)
        held = moved_to(decide(seen(rollout, few()), rollout, PAIRS_S, facts))
        assert (held.held, held.share, held.state) == ("policy", share, state)
        assert decide(seen(rollout, few()), held, PAIRS_S + 1, facts).action is Action.STAY
    assert decide(seen(rollout, failing()), rollout, 900.0, facts).action is Action.ROLL_BACK


def test_what_changes_beside_it_supersedes_it() -> None:
    """A deploy, say."""
    rollout = rollout_of(TERMS)
    decision = decide(seen(rollout), rollout, 0.0, replace(READY, superseded="control_changed"))

    assert (decision.action, decision.state) == (Action.END, RolloutState.SUPERSEDED)
    assert decision.news[0].kind == "rollout.superseded"


def test_a_rollback_ends_when_nothing_runs_any_more() -> None:
    """Or after a while."""
    rollout = rollout_of(TERMS, state=RolloutState.ROLLING_BACK, reason="why")

    assert decide(seen(rollout), rollout, 1.0, READY).action is Action.STAY
    for at, facts in ((1.0, replace(READY, is_drained=True)), (DRAIN_S, READY)):
        decision = decide(seen(rollout), rollout, at, facts)
        assert (decision.action, decision.state, decision.reason) == (Action.END, RolloutState.ROLLED_BACK, "why")


@pytest.mark.parametrize("state", [RolloutState.PROMOTED, RolloutState.ROLLED_BACK, RolloutState.SUPERSEDED])
def test_what_is_over_stays_over(state: RolloutState) -> None:
    """A person's promotion is never undone by the judge."""
    rollout = rollout_of(TERMS, state=state)

    assert decide(seen(rollout, failing()), rollout, 9e9, replace(READY, breaker="answer")).action is Action.STAY


def baking(**terms: Any) -> Rollout:
    return rollout_of(replace(TERMS, **terms), state=RolloutState.BAKING, step=2, share=9_500, twin_share=500)


def test_at_the_end_without_proof_what_was_asked_for_is_done() -> None:
    """Promote, hold, or roll back without a mark."""
    rollout = baking(on_undecided="hold")
    assert moved_to(decide(seen(rollout, few()), rollout, 1_801.0, READY)).held == "undecided"
    rollout = baking(on_undecided="rollback")
    back = decide(seen(rollout, few()), rollout, 1_801.0, READY)
    assert (back.action, back.marked) == (Action.ROLL_BACK, False)


def test_without_any_call_nothing_is_promoted() -> None:
    """No data is no success."""
    rollout = baking()

    assert moved_to(decide(seen(rollout), rollout, 1_801.0, READY)).held == "calls"


def test_a_proven_one_is_promoted_as_verified() -> None:
    """Whatever was asked for without proof."""
    rollout = baking(on_undecided="rollback")
    decision = decide(seen(rollout, compared_calls(3_000, 2)), rollout, 4_000.0, READY)

    assert (decision.action, decision.reason) == (Action.PROMOTE, "verified")


def test_one_that_is_not_judged_goes_by_its_times_alone() -> None:
    """That it was not is said; so is it if nothing of it can be compared."""
    unjudged = baking(skip_judging=True)
    fresh = rollout_of(TERMS, control={}, canary={"new": "v"}, state=RolloutState.BAKING, step=2, share=9_500)
    for rollout in (unjudged, fresh):
        decision = decide(seen(rollout, failing()), rollout, 1_801.0, READY)
        assert (decision.action, decision.reason) == (Action.PROMOTE, "unjudged")


def test_a_rollout_without_a_twin_is_compared_with_all_of_the_old_version() -> None:
    """It has no share of its own."""
    rollout = rollout_of(replace(TERMS, twin=False), twins={}, twin_share=0)

    assert moved_to(decide(seen(rollout, few()), rollout, 301.0, READY)).twin_share == 0


def test_a_ramp_whose_last_step_is_not_everything_bakes_there() -> None:
    """It is promoted from it."""
    rollout = rollout_of(replace(TERMS, steps=(100, 5_000)), step=1, share=5_000, twin_share=5_000)
    after = moved_to(decide(seen(rollout, few()), rollout, 301.0, READY))

    assert (after.state, after.share) == (RolloutState.BAKING, 5_000)


def test_what_is_promoted_without_proof_is_called_unverified() -> None:
    """It is what is done unless something else was asked for."""
    rollout = baking()
    decision = decide(seen(rollout, few()), rollout, 1_801.0, READY)

    assert (decision.action, decision.reason) == (Action.PROMOTE, "unverified")
