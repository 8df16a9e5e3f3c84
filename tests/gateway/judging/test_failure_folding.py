"""What a failure changes, and what is left of it when the old version has failed on the same input too."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutTerms, Sticky
from pilotlight_gateway.judging.call_folding import fold_call
from pilotlight_gateway.judging.evidence import Evidence, fold, start
from pilotlight_gateway.judging.function_evidence import FunctionEvidence
from pilotlight_gateway.judging.guards.crash_guard import DOUBTED_S
from tests.builders.compared import FUNCTION, compared_call, compared_history, rollout_of
from tests.example_counts import examples

HISTORY = compared_history()


def folded(*calls: ComparedCall) -> FunctionEvidence:
    """By a function with a history."""
    evidence = start(rollout_of(), history=HISTORY).functions[FUNCTION]
    for call in calls:
        fold_call(evidence, call)
    return evidence


def canary(**fields: Any) -> ComparedCall:
    return compared_call(Arm.CANARY, **fields)


def test_an_input_that_fails_on_the_old_version_too_is_no_crash() -> None:
    """Between both sides it is a failure as any other: the old version gets such inputs as often."""
    evidence = folded(canary(code="function_raised", also_failed=True))

    assert evidence.crash.e == 1.0
    assert evidence.events["errors"].canary == 1
    assert evidence.left_out == {"the old version failed on it too": 1}


def test_what_the_old_version_fails_later_takes_back_what_was_told() -> None:
    """It is no further call, and who is not known to have failed has nothing taken back."""
    failed = canary(code="function_raised", call_id="c", is_asked=True)
    again = canary(code="function_raised", call_id="c", also_failed=True, is_again=True)
    assert folded(failed).crash.e > 10.0
    evidence = folded(failed, again, again, replace(again, call_id="d"))

    assert evidence == folded(replace(failed, is_asked=False, also_failed=True))
    assert (evidence.crash.e, evidence.calls) == (1.0, {Arm.CANARY: 1})


def test_what_the_old_version_does_well_counts_for_good() -> None:
    """Once, and as when it had been known at once."""
    failed = canary(code="function_raised", call_id="c", is_asked=True)
    well = replace(failed, is_asked=False, is_again=True)

    assert folded(failed, well, well) == folded(replace(failed, is_asked=False))


def test_a_doubt_that_nobody_answers_counts_for_good_after_a_while() -> None:
    """Its gateway is gone."""
    failed = canary(code="function_raised", call_id="c", is_asked=True, at=1.0)
    evidence = folded(failed, compared_call(at=1.0 + DOUBTED_S))
    assert evidence.crash.firm_e == 1.0
    fold_call(evidence, compared_call(at=1.1 + DOUBTED_S))
    assert (evidence.crash.firm_e, evidence.crash.doubted) == (evidence.crash.e, [])


def test_of_a_dead_container_those_count_that_the_old_version_can_run() -> None:
    """Whichever of its calls is known first, and be one of them what has killed it."""
    died = [canary(code="container_died", container="c1", call_id=str(n), is_asked=True) for n in range(30)]
    back = [replace(call, is_asked=False, also_failed=True, is_again=True) for call in died]
    assert folded(*died).crash.failures == 1
    assert folded(*died, *back[:29]).crash.failures == 1
    assert folded(*died, *back).crash.failures == 0
    poison = replace(died[0], is_asked=False, also_failed=True)
    assert folded(poison, *died[1:], *back[2:]).crash.failures == 1
    assert folded(*died, *back).events["errors"].canary == 1


class DoubtedStep(NamedTuple):
    """A call of a made-up stream."""

    kind: str
    """`well`, `other`, `fails`, or `asked`: in doubt."""
    shared: dict[str, Any]
    answer: str
    """Of the old version, to one in doubt: `back`, `well`, or none."""
    after: int
    """Calls later at which it is told."""


SHARED: tuple[dict[str, Any], ...] = (
    {}, {"code": "container_died", "container": "c1"}, {"code": "container_died", "container": "c2", "batch": "c2/1",
    "batch_size": 3}, {"batch": "c1/1", "batch_size": 3}, {"unit": "u"}, {"unit": "v", "container": "c1"},
)  # fmt: skip
STEPS = st.lists(
    st.builds(
        DoubtedStep, st.sampled_from(["well", "other", "fails", "asked", "asked"]), st.sampled_from(SHARED),
        st.sampled_from(["back", "back", "well", ""]), st.integers(0, 12),
    ),
    min_size=1, max_size=40,
)  # fmt: skip


def streams_of(steps: list[DoubtedStep]) -> tuple[list[ComparedCall], list[ComparedCall]]:
    """A stream in which failures are told and taken back, and the same in which those are never told as failures."""
    told: list[tuple[int, ComparedCall]] = []
    never: list[tuple[int, ComparedCall]] = []
    for place, step in enumerate(steps):
        fields: dict[str, Any] = {"code": "function_raised"} | step.shared | {"call_id": str(place), "at": 5.0}
        if step.kind in ("well", "other"):
            fields["code"] = ""
        call = compared_call(Arm.TWIN if step.kind == "other" else Arm.CANARY, **fields)
        if step.kind != "asked":
            told.append((place, call))
            never.append((place, call))
            continue
        told.append((place, replace(call, is_asked=True)))
        if step.answer != "back":
            never.append((place, replace(call, is_asked=True)))
        else:
            never.append((place, replace(call, also_failed=True)))
        if step.answer:
            answer = replace(call, is_again=True, also_failed=step.answer == "back")
            told.append((place + step.after, answer))
            if step.answer == "well":
                never.append((place + step.after, answer))
    by_place = sorted(told, key=lambda one: one[0]), sorted(never, key=lambda one: one[0])
    return [call for _, call in by_place[0]], [call for _, call in by_place[1]]


@given(STEPS, st.sampled_from([Sticky.CALL, Sticky.USER]))
@examples(400)
def test_what_is_taken_back_leaves_the_same_bits_as_if_it_had_never_been_told(
    steps: list[DoubtedStep], sticky: Sticky
) -> None:
    """In whatever order, of whatever shares a container's death, a batch or a sticky unit; also of E's largest."""
    told, never = streams_of(steps)
    found: list[Evidence] = []
    for calls in (told, never):
        evidence = start(rollout_of(RolloutTerms(tolerance=0.0, sticky=sticky)), history=HISTORY)
        for seq, call in enumerate(calls, start=1):
            evidence = fold(evidence, seq, (call,))
        found.append(evidence)
    one, other = found

    assert one.functions == other.functions
    assert (one.value, one.peak, one.high_at) == (other.value, other.peak, other.high_at)


def test_a_doubt_counts_while_it_is_and_not_when_it_is_taken_back() -> None:
    """E is as high as if it were firm, so three end a version; taken back, nothing holds the ramp for it."""
    failed = [canary(code="function_raised", call_id=str(n), is_asked=True, at=9.0) for n in range(3)]
    evidence = fold(start(rollout_of(), history=HISTORY), 1, failed)
    assert evidence.is_regressed
    back = [replace(call, is_asked=False, is_again=True, also_failed=True) for call in failed]
    assert not fold(evidence, 2, back).is_regressed
    assert (evidence.peak, evidence.high_at) == (max(1.0, evidence.peak), 0.0)
