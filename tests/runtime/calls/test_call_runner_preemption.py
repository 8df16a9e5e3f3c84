"""A container's calls when its node is taken away."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import (
    Ended,
    Outcome,
    Refusal,
    Refused,
    RemoteError,
    ResumePoint,
)
from pilotlight_core.model.spec import Batching, Mode
from pilotlight_runtime.calls.call_runner import CUT_OFF_S
from pilotlight_runtime.calls.preemption_plan import PreemptionPlan
from pilotlight_runtime.guest.frames import BatchResult, CancelCall, ChunkOut, GuestItemResult, InvokeBatch, Result
from tests.builders.calls import BODY, run
from tests.runtime.fake_runner_io import FakeRunnerIO, accepted, runner_of

ERROR = RemoteError("ValueError", "no")


@pytest.fixture
def io() -> FakeRunnerIO:
    return FakeRunnerIO()


def plan(until_at: float) -> PreemptionPlan:
    return PreemptionPlan(until_at=until_at, reason="its node is taken away")


def test_calls_that_have_not_begun_are_handed_back(io: FakeRunnerIO) -> None:
    """Those that wait for the guest, for their batch or for their input: refused, so they run elsewhere uncharged."""
    runner = runner_of(io)
    for call in "ab":
        runner.add(accepted(run(call), 1.0), 1.0)
    runner.add(accepted(run("c", body=BODY), 1.0), 1.0)
    runner.refuse_waiting()
    runner.on_input(io.fetches[0], b"\x80", 2.0)

    assert [frame.reason for frame in io.of(Refused)] == [Refusal.DRAINING] * 2
    assert runner.held == ("a",)
    batching = runner_of(batched := FakeRunnerIO(), batching=Batching(max_batch_size=4, wait_ms=1000.0))
    batching.add(accepted(run("d"), 1.0), 1.0)
    batching.refuse_waiting()
    assert isinstance(batched.last("d"), Refused)
    assert batching.is_idle


def test_a_call_that_does_not_fit_ends_when_its_guest_does(io: FakeRunnerIO) -> None:
    """It is told to, and says what it counted; its origin hears that its node is taken away."""
    runner = runner_of(io, idempotent=True)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.preempt(plan(100.0), 20.0)
    assert not io.of(CancelCall)  # it is expected to go on for as long again
    runner.preempt(plan(100.0), 60.0)
    assert [frame.call_id for frame in io.of(CancelCall)] == ["a"]
    runner.on_result(Result(call_id="a", outcome=Outcome.CANCELLED, units={"images": 3}), 60.1)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.preempted, ended.started) == (Outcome.DIED, True, True)
    assert (ended.reason, ended.units) == ("its node is taken away", {"images": 3})


def test_a_guest_that_does_not_hear_is_not_waited_for(io: FakeRunnerIO) -> None:
    """The origin has the end of the call, and what the guest answers later is nothing."""
    runner = runner_of(io, max_inputs=2)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.preempt(plan(2.0), 2.0)
    runner.preempt(plan(2.0), 2.0 + CUT_OFF_S)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.preempted) == (Outcome.DIED, True)
    assert runner.is_idle
    runner.on_result(Result(call_id="a", output=b"\x01"), 9.0)
    assert io.last("a") is ended
    assert not io.kills
    assert runner.running == 0


@pytest.mark.parametrize(("is_last", "ends"), [(False, True), (True, False)])
def test_a_resumable_stream_that_may_not_move_again_has_all_the_time(
    io: FakeRunnerIO, is_last: bool, ends: bool
) -> None:
    """Idempotent or not: its origin would not run it again."""
    runner = runner_of(io, idempotent=True, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", resume=ResumePoint(is_last=is_last)), 1.0), 1.0)
    runner.preempt(plan(10.0), 9.0)
    assert bool(io.of(CancelCall)) is ends
    runner.preempt(plan(10.0), 10.0)
    assert io.of(CancelCall)


def test_a_batch_that_does_not_fit_ends_whole(io: FakeRunnerIO) -> None:
    """Its items are not run one by one, although its guest raised, and nobody is answered twice."""
    runner = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=1000.0), idempotent=True)
    for call in "ab":
        runner.add(accepted(run(call), 1.0), 1.0)
    (batch,) = io.of(InvokeBatch)
    runner.preempt(plan(10.0), 10.0)
    runner.preempt(plan(10.0), 11.0)
    assert {io.last(call).call_id for call in "ab"} == {"a", "b"}
    failed = tuple(GuestItemResult(call_id=call, outcome=Outcome.RAISED, error=ERROR) for call, _ in batch.items)
    runner.on_batch_result(BatchResult(batch=batch.batch, results=failed, whole=True), 12.0)

    assert not io.splits
    assert len(io.of(Ended)) == 2
    assert runner.is_idle


def test_a_call_that_never_began_in_its_guest_may_go_elsewhere(io: FakeRunnerIO) -> None:
    """Even one that must not run twice: the guest had it in its queue."""
    runner = runner_of(io, max_inputs=2)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.preempt(plan(2.0), 2.0)
    runner.on_result(Result(call_id="a", outcome=Outcome.CANCELLED, started=False), 2.1)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert not ended.started


def test_a_call_that_nobody_wants_is_not_waited_for_at_the_end(io: FakeRunnerIO) -> None:
    """It was cancelled before: it ends as that."""
    runner = runner_of(io)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.cancel("a", "the caller left", 1.5)
    runner.preempt(plan(10.0), 9.0)
    assert not runner.is_idle
    runner.preempt(plan(10.0), 10.0)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.preempted) == (Outcome.CANCELLED, False)


def test_a_resumable_stream_that_does_not_fit_moves_at_once(io: FakeRunnerIO) -> None:
    """Although a part of it was sent: another container goes on behind that. One that cannot move again stays."""
    for is_last in (False, True):
        runner = runner_of(io, mode=Mode.GENERATOR)
        call = accepted(run("a", resume=ResumePoint(is_last=is_last)), 1.0)
        runner.add(call, 1.0)
        runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b"\x01"), 2.0)
        runner.preempt(plan(100.0), 60.0)
        assert call.is_preempted is not is_last


@pytest.mark.parametrize(("is_last", "units"), [(False, None), (True, {"completion_tokens": 3})])
def test_what_a_stream_that_moves_has_counted_is_counted_where_it_ends(
    io: FakeRunnerIO, is_last: bool, units: dict[str, int] | None
) -> None:
    """Once, of all of it; one that cannot move again is counted here."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", resume=ResumePoint(is_last=is_last)), 1.0), 1.0)
    runner.preempt(plan(10.0), 10.0)
    runner.on_result(Result(call_id="a", outcome=Outcome.CANCELLED, units={"completion_tokens": 3}), 10.1)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert ended.units == units
