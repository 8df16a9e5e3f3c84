"""The next step of a rollout, from every state."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_record import ENDED, WHOLE, Rollout, RolloutState, RolloutTerms, Verdict
from pilotlight_gateway.judging.rollout_steps import CALM_S, CAPACITY_S, PAIRS_S, QUIET_S, RolloutFacts, next_step
from tests.gateway.judging.compared import a_rollout

AT = 10_000.0
CALM, WARM, BAD = Verdict(evidence=1.0), Verdict(evidence=20.0), Verdict(evidence=200.0, sentences=("It is worse.",))
READY = RolloutFacts(ready={"ver_old": 4, "ver_new": 4, "ver_twin": 4})
STEPS = (100, 2_500, WHOLE)


def at(state: RolloutState, **fields: Any) -> Rollout:
    terms = {"steps": STEPS, "every_s": 300.0, "calls": 100, **fields.pop("terms", {})}
    made = replace(a_rollout(**terms), state=state, since=AT)
    return replace(made, **fields)


def ramp(**fields: Any) -> Rollout:
    return at(RolloutState.RAMP, **({"step": 0, "share": 100, "twin_share": 100} | fields))


def moved(rollout: Rollout, verdict: Verdict = CALM, facts: RolloutFacts = READY, after: float = 0.0) -> Rollout:
    step = next_step(rollout, verdict, facts, AT + after)
    assert step is not None
    return step.rollout


def test_a_rollout_goes_from_its_plan_to_its_promotion() -> None:
    """With nothing in the way, and told what each step is."""
    rollout, told, time_, compared = at(RolloutState.PLANNED, terms={"pairs": 300}), [], 0.0, 0
    facts = READY
    states = [rollout.state]
    while rollout.is_running:
        time_ += 100.0
        compared += 60
        step = next_step(rollout, CALM, facts._replace(compared=compared, pairs=300), AT + time_)
        if step is not None:
            rollout = step.rollout
            if step.event:
                told.append(step.event)
            if rollout.state is not states[-1]:
                states.append(rollout.state)
        assert time_ < 5_000
    assert states == [
        RolloutState.PLANNED, RolloutState.CHECKING, RolloutState.STARTING, RolloutState.PAIRS, RolloutState.RAMP,
        RolloutState.BAKING, RolloutState.PROMOTED,
    ]  # fmt: skip
    assert told == ["started", "step", "step", "step", "step", "promoted"]
    assert (rollout.share, rollout.reason) == (WHOLE, "unverified")


def test_what_is_held_back_stays_through_baking() -> None:
    now = moved(ramp(step=1, share=2_500, twin_share=2_500), facts=READY._replace(compared=200), after=300.0)
    assert (now.state, now.share, now.twin_share) == (RolloutState.BAKING, 9_500, 500)


@pytest.mark.parametrize("state", [one for one in RolloutState if one not in ENDED | {RolloutState.ROLLING_BACK}])
def test_what_is_worse_goes_back_from_every_state(state: RolloutState) -> None:
    """Routing first, also while it is paused or held; its version is marked."""
    step = next_step(at(state, share=500, twin_share=500, paused_by="k", held="gate"), BAD, READY, AT)
    assert step is not None
    assert (step.rollout.state, step.rollout.share, step.rollout.twin_share) == (RolloutState.ROLLING_BACK, 0, 0)
    assert (step.event, step.marks, step.rollout.reason) == ("rolled_back", True, "It is worse.")


def test_a_breaker_that_opens_ends_it() -> None:
    step = next_step(ramp(), CALM, READY._replace(breaker="5 containers in a row died"), AT)
    assert step is not None
    assert step.marks
    assert "5 containers" in step.said


def test_a_frozen_one_and_one_without_judging_stay() -> None:
    frozen = next_step(ramp(frozen=True), BAD, READY, AT)
    assert frozen is not None
    assert (frozen.rollout.state, frozen.event) == (RolloutState.RAMP, "held")
    unjudged = next_step(ramp(terms={"skip_judging": True}), BAD, READY, AT)
    assert unjudged is None or unjudged.rollout.state is RolloutState.RAMP


def test_a_step_is_left_after_its_time_and_with_its_calls() -> None:
    enough = READY._replace(compared=100)
    assert next_step(ramp(), CALM, enough, AT + 299.0) is None
    assert next_step(ramp(), CALM, READY._replace(compared=99), AT + 300.0) is None
    assert moved(ramp(), facts=enough, after=300.0).step == 1
    assert moved(ramp(calls_before=50), facts=READY._replace(compared=150), after=300.0).step == 1
    assert moved(ramp(), after=QUIET_S).step == 1, "a function that nobody calls is not waited for for ever"


def test_the_share_never_exceeds_ready_capacity() -> None:
    few = RolloutFacts(ready={"ver_old": 10, "ver_new": 1, "ver_twin": 1}, compared=100)
    now = moved(ramp(), facts=few, after=300.0)
    assert (now.step, now.share) == (1, 1_000)
    held = next_step(now, CALM, few, AT + 301.0)
    assert held is not None
    assert (held.rollout.held, held.rollout.share) == ("no_capacity", 1_000)
    more = moved(held.rollout, facts=few._replace(ready={"ver_old": 10, "ver_new": 3, "ver_twin": 3}), after=302.0)
    assert (more.share, more.twin_share, more.held) == (2_500, 2_500, "")


def test_without_containers_it_waits_and_then_goes_back_unmarked() -> None:
    none = RolloutFacts(ready={"ver_old": 4})
    waiting = moved(at(RolloutState.STARTING), facts=none)
    assert waiting.held == "no_capacity"
    assert next_step(waiting, CALM, none, AT + 1.0) is None
    step = next_step(waiting, CALM, none, AT + CAPACITY_S)
    assert step is not None
    assert (step.rollout.state, step.marks) == (RolloutState.ROLLING_BACK, False)
    twinless = moved(replace(at(RolloutState.STARTING), twins={}))
    assert twinless.held == "no_twin"


def test_a_function_that_nobody_calls_starts_no_container_for_it() -> None:
    assert moved(at(RolloutState.STARTING), facts=RolloutFacts(ready={})).state is RolloutState.RAMP


def test_evidence_holds_a_ramp_until_it_is_calm_for_a_while() -> None:
    warned = moved(ramp(), WARM, READY._replace(compared=100), after=300.0)
    assert (warned.step, warned.held) == (0, "evidence")
    assert next_step(warned, CALM, READY._replace(compared=500), AT + 300.0 + CALM_S - 1.0) is None
    assert moved(warned, facts=READY._replace(compared=500), after=300.0 + CALM_S).step == 1


def test_a_split_that_is_not_as_said_holds() -> None:
    assert moved(ramp(), Verdict(word="invalid"), READY._replace(compared=500), after=300.0).held == "invalid_split"


def test_pairs_end_when_there_are_enough_or_none_come() -> None:
    pairs = at(RolloutState.PAIRS, terms={"pairs": 300})
    assert next_step(pairs, CALM, READY._replace(pairs=299), AT + 1.0) is None
    assert moved(pairs, facts=READY._replace(pairs=300), after=1.0).state is RolloutState.RAMP
    assert moved(pairs, after=PAIRS_S).state is RolloutState.RAMP
    refused = at(RolloutState.STARTING, terms={"pairs": 300})
    assert moved(refused, facts=READY._replace(why_no_pairs="it has secrets")).state is RolloutState.RAMP


def test_a_paused_one_stays_where_it_is_and_goes_on_when_told() -> None:
    paused = moved(ramp(paused_by="key_1"), facts=READY._replace(compared=500), after=300.0)
    assert (paused.held, paused.share) == ("paused", 100)
    assert moved(replace(paused, paused_by=""), facts=READY._replace(compared=500), after=301.0).step == 1


@pytest.mark.parametrize(("answer", "held"), [(None, "gate"), (False, "the gate refused")])
def test_a_gate_is_asked_before_each_step(answer: bool | None, held: str) -> None:
    gated = ramp(terms={"gate": "https://gate.example"})
    facts = READY._replace(compared=500, gate=answer)
    assert moved(gated, facts=facts, after=300.0).held == held
    assert moved(gated, facts=facts._replace(gate=True), after=300.0).step == 1


def test_a_person_promotes_from_any_state_and_nobody_undoes_it() -> None:
    step = next_step(ramp(wanted="promote", paused_by="k"), BAD, READY, AT)
    assert step is not None
    assert (step.promotes, step.rollout.state, step.rollout.reason) == (
        True, RolloutState.PROMOTED, "promoted by hand",
    )  # fmt: skip
    assert next_step(step.rollout, BAD, READY, AT) is None


@pytest.mark.parametrize(
    ("on_undecided", "word", "state"),
    [
        ("promote", "undecided", RolloutState.PROMOTED),
        ("hold", "undecided", RolloutState.BAKING),
        ("rollback", "undecided", RolloutState.ROLLING_BACK),
        ("rollback", "verified", RolloutState.PROMOTED),
    ],
)
def test_the_end_is_what_was_asked_for(on_undecided: str, word: str, state: RolloutState) -> None:
    baking = at(
        RolloutState.BAKING, step=2, share=9_500, twin_share=500, terms={"on_undecided": on_undecided, "bake_s": 60.0}
    )
    assert next_step(baking, Verdict(word=word), READY, AT + 59.0) is None
    assert moved(baking, Verdict(word=word), after=60.0).state is state


def test_a_rollback_ends_when_nothing_runs_any_more_or_after_its_time() -> None:
    going = at(RolloutState.ROLLING_BACK)
    assert next_step(going, CALM, READY, AT + 1.0) is None
    assert moved(going, facts=READY._replace(is_drained=True), after=1.0).state is RolloutState.ROLLED_BACK
    assert moved(going, after=300.0).state is RolloutState.ROLLED_BACK


def test_the_default_terms_end_with_everything() -> None:
    assert RolloutTerms().steps[-1] == WHOLE
