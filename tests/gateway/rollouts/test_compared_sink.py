"""What the judge is told of calls: on which side, how they ended, and what they took where it was theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import FunctionRaised
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, GuardTerms, Rollout, RolloutState
from pilotlight_core.model.rollouts.split import Side
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.rollouts.compared_sink import ComparedSink, cost_parameter, guarded_fields
from pilotlight_gateway.shadows.shadow_calls import Shadowed
from pilotlight_gateway.shadows.shadow_pairs import Pair, PairedSide
from pilotlight_gateway.splits.split_calls import STALE
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, method
from tests.gateway.rollouts.kept_rollout import QUICK, record_of, rollout

CANARY = Side("rol_1", Arm.CANARY, 0.5, "")
STAGES = {"execute": 12.0, "queue": 1.0}
RESULT = CallResult(output=msgspec.msgpack.encode({"score": {"loss": 2.0}}), container="c1")

FAILED_IN_C9 = CallResult(output=b"", container="c9")


class Sink:
    """A sink over one record, and what it has told."""

    def __init__(self, one: Rollout, at: float = 7.0) -> None:
        self.told: list[ComparedCall] = []
        registry = MemoryRegistry()
        registry.rollout_records["acme", "app"] = record_of(replace(one, control={"fn": "a"}, canary={"fn": "b"}))
        self.due: list[Callable[[], None]] = []
        self.of = ComparedSink(
            registry,
            lambda _tenant, _app, call: self.told.append(call),
            wall=lambda: at,
            later=lambda _s, call_back: self.due.append(call_back),
        )

    def pass_time(self) -> None:
        while self.due:
            self.due.pop()()

    def ended(self, call: PreparedCall, result: CallResult = RESULT) -> None:
        self.of.call_ended(call, result, STAGES, 15.0)

    def failed(self, call: PreparedCall | None, code: str, container: str = "c1") -> None:
        course = CallResult(output=b"", container=container)
        self.of.call_failed(FailedCall(code, "acme", None, call, course, 15.0, is_client_gone=False))


@pytest.fixture
def sink() -> Sink:
    return Sink(rollout(state=RolloutState.RAMP, share=5_000))


def test_a_call_is_told_with_its_side_and_what_it_took(sink: Sink) -> None:
    """Its number among its container's calls is the agent's, whichever gateways heard the others; 0: it says none."""
    for nth in (7, 0):
        sink.ended(prepared_call(side=CANARY, split=3), replace(RESULT, nth=nth))
    first, second = sink.told
    assert (first.arm, first.rho, first.revision, first.execute_ms, first.at) == (Arm.CANARY, 0.5, 3, 12.0, 7.0)
    assert (first.nth_call, second.nth_call, first.container) == (7, 0, "c1")


SHADOW = CallResult(output=b"\xc0", container="c2", stages={"execute": 12.0}, units={"tokens": 8})


@pytest.mark.parametrize(
    ("spent", "code_ns"),
    [
        (Spent(ns=14_000_000, ppm=500_000, price="h100"), 6_000_000),
        (Spent(ns=11_000_000, ppm=500_000, price="h100"), 5_500_000),
        (Spent(ns=14_000_000, ppm=500_000, price="h100", batch_size=2), 0),
        (Spent(ns=14_000_000, ppm=500_000, price="h100", starts=(7_000_000, 7_000_000)), 0),
    ],
)
def test_a_shadow_is_told_with_what_its_own_code_took(sink: Sink, spent: Spent, code_ns: int) -> None:
    """Of its bill, and no more than that; of one that shared its run, or began twice, nobody knows."""
    shadow = prepared_call()
    ran = Shadowed(call=shadow, result=replace(SHADOW, metered=spent), error=None, total_ms=20.0, first_ms=3.0)
    failed = Shadowed(call=shadow, result=None, error=FunctionRaised("no"), total_ms=20.0)
    sides = (PairedSide(Arm.TWIN, ran, differs=False), PairedSide(Arm.CANARY, failed, differs=False))
    sink.of.pair_ran(Pair(rollout(state=RolloutState.PAIRS), 4, prepared_call(), sides))

    twin, canary = sink.told
    assert (twin.arm, twin.gpu_ns, twin.code_ns) == (Arm.TWIN, spent.ns // 2, code_ns)
    assert (twin.tokens, twin.first_ms, twin.revision) == (8, 3.0, 4)
    assert (canary.code, canary.gpu_ns, canary.code_ns, canary.tokens) == ("function_raised", 0, 0, 0)
    assert twin.pair == canary.pair != ""


def test_a_batch_has_one_name_at_all_gateways() -> None:
    """Its container's and its number there: two that end at one instant are two. Alone in its batch is alone."""
    one, another = (Sink(rollout(state=RolloutState.RAMP, share=5_000), at) for at in (7.0, 9.9))
    spent = Spent(ns=1, ppm=1, price="h100", batch_size=2)
    for sink, batch in ((one, 3), (another, 3), (one, 4), (one, 0)):
        sink.ended(prepared_call(side=CANARY), replace(RESULT, nth=50, batch=batch, spent=spent))
    assert [told.batch for told in (*one.told, *another.told)] == ["c1/3", "c1/4", "", "c1/3"]


def test_a_batch_of_an_agent_of_before_is_what_ends_at_once(sink: Sink) -> None:
    """It numbers neither calls nor batches."""
    spent = Spent(ns=1, ppm=1, price="h100", batch_size=2)
    sink.ended(prepared_call(side=CANARY), replace(RESULT, spent=spent))
    sink.ended(prepared_call(side=CANARY), RESULT)
    assert [bool(told.batch) for told in sink.told] == [True, False]


def test_a_call_that_runs_is_told_as_it_would_be_at_its_end(sink: Sink) -> None:
    """But for how long it took: by what is known before."""
    spent = Spent(ns=0, ppm=0, price="h100")
    course = replace(RESULT, output=b"", nth=50, batch=3, spent=spent)
    told = sink.of.running_call(prepared_call(side=CANARY), course, 900.0)
    assert told is not None
    assert (told.is_running, told.execute_ms, told.gpu_type) == (True, 900.0, "h100")
    assert (told.nth_call, told.batch, told.container) == (50, "c1/3", "c1")
    assert sink.of.running_call(prepared_call(), course, 900.0) is None


def test_what_the_old_version_ran_in_the_end_counts_as_the_new_ones_failure(sink: Sink) -> None:
    """Its caller had an answer; what that took says nothing of the new version, its container's death does."""
    left = CallResult(output=b"", container="c9", nth=4, batch=2)
    result = replace(RESULT, moved="container_died", moved_from=left, fallback="app.fn@v1")
    sink.ended(prepared_call(side=CANARY, split=3), result)
    (told,) = sink.told
    assert (told.code, told.container, told.execute_ms, told.gpu_ns) == ("container_died", "c9", 0.0, 0)
    assert (told.batch, told.is_degraded) == ("c9/2", False)


def test_a_fallback_is_told(sink: Sink) -> None:
    sink.ended(prepared_call(side=CANARY), replace(RESULT, fallback="app.fn@v1"))
    assert sink.told[0].is_degraded


def test_what_is_of_no_side_is_not_told(sink: Sink) -> None:
    """Pins, shadows, other rollouts, calls that were chosen for anew, and requests that were no call yet."""
    sink.ended(prepared_call())
    sink.ended(prepared_call(side=CANARY, shadow=True))
    sink.ended(prepared_call(side=CANARY._replace(rollout="rol_0")))
    sink.ended(prepared_call(side=CANARY), replace(RESULT, moved=STALE))
    sink.failed(prepared_call(side=CANARY), STALE)
    sink.failed(None, "bad_input")
    sink.failed(prepared_call(side=CANARY._replace(arm=Arm.CONTROL, rho=0.0)), "function_raised")
    assert sink.told == []


@pytest.mark.parametrize(
    ("state", "told"), [(RolloutState.STARTING, 1), (RolloutState.PAIRS, 1), (RolloutState.RAMP, 0)]
)
def test_before_anything_is_compared_calls_say_what_is_usual(state: RolloutState, told: int) -> None:
    sink = Sink(rollout(state=state))
    sink.ended(prepared_call(side=CANARY._replace(arm=Arm.CONTROL, rho=0.0)))
    assert len(sink.told) == told


@pytest.mark.parametrize("runs_again", [True, False])
def test_failures_of_the_old_version_are_usual_too(*, runs_again: bool) -> None:
    """Else a version that fails as often as the old one looks worse than it. As in a call that is compared, the first
    start counts.
    """
    sink = Sink(rollout(state=RolloutState.STARTING))
    call = prepared_call(side=CANARY._replace(arm=Arm.CONTROL, rho=0.0))
    if runs_again:
        sink.of.start_failed(call, "function_raised", FAILED_IN_C9)
        sink.ended(call)
    else:
        sink.failed(call, "function_raised")
    assert [(told.code, told.rho) for told in sink.told] == [("function_raised", 0.0)]


@pytest.mark.parametrize("arm", [Arm.CANARY, Arm.TWIN, Arm.CONTROL])
@pytest.mark.parametrize("slow", [True, False])
def test_a_start_that_failed_is_what_its_call_counts_for(sink: Sink, arm: Arm, *, slow: bool) -> None:
    """On either side alike: whether it is run again with success says nothing more, nor do further starts. It is told
    when its call ends, or, of the new version, after a moment as one in doubt, and for good then.
    """
    call = prepared_call(side=CANARY._replace(arm=arm), split=3)
    sink.of.start_failed(call, "function_raised", FAILED_IN_C9)
    sink.of.start_failed(call, "function_raised", replace(FAILED_IN_C9, container="c8"))
    assert len(sink.told) == (arm is not Arm.CANARY)
    if slow:
        sink.pass_time()
        assert len(sink.told) == 1
    sink.ended(call, replace(RESULT, moved="function_raised", moved_from=FAILED_IN_C9))
    sink.pass_time()
    told, *answers = sink.told
    assert (told.arm, told.code, told.container, told.execute_ms) == (arm, "function_raised", "c9", 0.0)
    is_in_doubt = slow and arm is Arm.CANARY
    assert (told.is_asked, told.is_again) == (is_in_doubt, False)
    assert answers == ([replace(told, is_asked=False, is_again=True)] if is_in_doubt else [])
    sink.told.clear()
    sink.ended(call)
    assert [one.code for one in sink.told] == [""], "nothing is remembered of it"


@pytest.mark.parametrize(
    ("arm", "code", "container", "quick", "slow"),
    [
        (Arm.CANARY, "function_raised", "c1", [True], [False, True]),
        (Arm.CANARY, "function_raised", "c9", [False], [False, False]),  # nobody could run it again
        (Arm.CANARY, "cancelled", "c1", [False], [False, False]),
        (Arm.TWIN, "function_raised", "c1", [False], [False]),
    ],
)
def test_what_the_old_version_fails_as_well_is_nobodys(
    sink: Sink, arm: Arm, code: str, container: str, quick: list[bool], slow: list[bool]
) -> None:
    """It is told so at first, or what was told in doubt is taken back; else it is the new version's for good."""
    for number, (waits, said) in enumerate([(False, quick), (True, slow)]):
        sink.told.clear()
        call = prepared_call(f"call_{number}", side=CANARY._replace(arm=arm), split=3)
        sink.of.start_failed(call, "function_raised", FAILED_IN_C9)
        if waits:
            sink.pass_time()
        sink.failed(call, code, container)
        assert [told.also_failed for told in sink.told] == said
        assert [told.is_again for told in sink.told] == [False, True][: len(said)]
        assert [told.is_asked for told in sink.told] == [waits and arm is Arm.CANARY, False][: len(said)]
        assert {told.container for told in sink.told} == {"c9"}
        assert {told.call_id for told in sink.told} == {call.call_id}


def test_what_is_held_when_its_gateway_ends_is_told(sink: Sink) -> None:
    sink.of.start_failed(prepared_call(side=CANARY), "function_raised", FAILED_IN_C9)
    sink.of.report_held()
    sink.pass_time()
    assert [(told.code, told.is_asked) for told in sink.told] == [("function_raised", False)]


def test_a_call_is_not_kept_for_what_is_held_of_it(sink: Sink) -> None:
    """It has its input, which may be large."""
    call = prepared_call(side=CANARY)
    before = sys.getrefcount(call)
    sink.of.start_failed(call, "function_raised", FAILED_IN_C9)
    assert sys.getrefcount(call) == before


def test_a_call_that_is_run_again_is_not_watched(sink: Sink) -> None:
    """Its first start is what it counts for, and what it was told of; a call's end is not told then."""
    call = prepared_call(side=CANARY._replace(arm=Arm.TWIN))
    assert sink.of.running_call(call, RESULT, 9.0) is not None
    sink.of.start_failed(call, "function_raised", FAILED_IN_C9)
    assert sink.of.running_call(call, RESULT, 9.0) is None


def test_a_start_of_a_call_that_is_not_compared_is_not_told(sink: Sink) -> None:
    sink.of.start_failed(prepared_call(), "function_raised", FAILED_IN_C9)
    sink.of.start_failed(prepared_call(side=CANARY._replace(rho=0.0)), "function_raised", FAILED_IN_C9)
    sink.failed(prepared_call(side=CANARY), "bad_output")
    assert [told.code for told in sink.told] == ["bad_output"]


def test_guards_of_its_own_are_read_by_their_paths() -> None:
    guards = (
        GuardTerms(name="loss", kind="amount", field="score.loss"),
        GuardTerms(name="bad", kind="event", field="x"),
    )
    sink = Sink(rollout(state=RolloutState.RAMP, terms=replace(QUICK, guards=guards)))
    sink.ended(prepared_call(side=CANARY))
    assert sink.told[0].fields == {"loss": 2.0}


@pytest.mark.parametrize(
    "output", [b"", b"\xc1", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"x": "text"}), b"x" * 100_000]
)
def test_answers_that_say_nothing_are_left_out(output: bytes) -> None:
    assert guarded_fields((GuardTerms(name="x", kind="amount", field="x"),), output) == {}


def test_events_are_one_or_nothing() -> None:
    guards = (GuardTerms(name="x", kind="event", field="x"),)
    assert guarded_fields(guards, msgspec.msgpack.encode({"x": 7})) == {"x": 1.0}
    assert guarded_fields(guards, msgspec.msgpack.encode({"x": False})) == {"x": 0.0}
    assert guarded_fields(guards, msgspec.msgpack.encode({"x": float("nan")})) == {}


def test_without_a_declared_cost_there_is_none() -> None:
    plain = function_spec("fn", method()).methods[0]
    assert cost_parameter(plain, msgspec.msgpack.encode({"n": 3})) == 0.0


def test_what_a_call_is_billed_is_told_of_whole_gpus(sink: Sink) -> None:
    spent = Spent(ns=4_000_000, ppm=500_000, price="h100", batch_size=2)
    sink.ended(prepared_call(side=CANARY), replace(RESULT, spent=spent))
    (told,) = sink.told
    assert (told.gpu_ns, told.gpu_type, told.batch_size) == (2_000_000, "h100", 2)
    assert told.batch
