"""A container's calls: every path from acceptance to the last frame, on a fake world."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.messages.call_messages import Ended, Outcome, Refusal, Refused, RemoteError, Started
from pilotlight_core.model.spec import Batching
from pilotlight_core.model.tracing.trace_context import context_within
from pilotlight_runtime.calls import call_runner
from pilotlight_runtime.calls.call_runner import INLINE_BYTES
from pilotlight_runtime.guest.frames import (
    BatchResult,
    CancelCall,
    ChunkOut,
    GuestItemResult,
    Invoke,
    InvokeBatch,
    Result,
)
from tests.builders.calls import BODY, run
from tests.runtime.fake_runner_io import FakeRunnerIO, accepted, runner_of

ERROR = RemoteError("ValueError", "no")

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def io() -> FakeRunnerIO:
    return FakeRunnerIO()


def results(batch: InvokeBatch, **more: Any) -> BatchResult:
    """An answer of OK to every item."""
    items = tuple(GuestItemResult(call_id=call, output=b"\x01") for call, _ in batch.items)
    return BatchResult(batch=batch.batch, results=items, execute_ns=5_000_000, **more)


def test_a_call_is_started_before_the_guest_gets_it(io: FakeRunnerIO) -> None:
    """An origin that asks hears Started, the guest gets the input, the answer is the last frame, the slot is free."""
    runner = runner_of(io)
    runner.add(accepted(run("a", tell_start=True), 1.0), 1.0)
    runner.on_result(Result(call_id="a", output=b"\x2a", execute_ns=2_000_000), 1.5)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.started, ended.output) == (Outcome.OK, True, b"\x2a")
    assert (ended.stages.execute_ms, ended.stages.total_ms) == (2.0, 500.0)
    (started,) = io.of(Started)
    assert (started.call_id, started.nth, started.batch, started.price) == ("a", 1, 0, "cpu")
    assert (ended.nth, ended.batch) == (1, 0)
    assert [frame.input for frame in io.of(Invoke)] == [b"\x80"]
    assert io.released == ["a"]


def test_a_start_of_which_nobody_asks_is_not_told(io: FakeRunnerIO) -> None:
    """One frame for a call, its last."""
    runner = runner_of(io)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.on_result(Result(call_id="a", output=b"\x2a", execute_ns=2_000_000), 1.5)

    assert [type(frame) for frame in io.sent] == [Ended]
    assert runner.is_idle


def test_the_guests_word_on_its_time_is_bounded_by_ours(io: FakeRunnerIO) -> None:
    """A guest cannot claim more time than has passed."""
    runner = runner_of(io)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.on_result(Result(call_id="a", execute_ns=10**15), 1.25)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert ended.stages.execute_ms == 250.0


def test_the_guest_gets_as_much_as_it_works_on_at_a_time(io: FakeRunnerIO) -> None:
    """Beyond max_inputs calls wait in order."""
    runner = runner_of(io, max_inputs=2)
    for call in "abc":
        runner.add(accepted(run(call), 1.0), 1.0)
    assert [frame.call_id for frame in io.of(Invoke)] == ["a", "b"]

    runner.on_result(Result(call_id="b"), 1.1)

    assert [frame.call_id for frame in io.of(Invoke)] == ["a", "b", "c"]
    assert runner.running == 2


def test_what_does_not_start_at_once_is_noted(io: FakeRunnerIO) -> None:
    """A batch that forms, a turn that is waited for, an input on its way; what starts at once needs no note."""
    runner_of(io, batching=Batching(max_batch_size=2, wait_ms=50)).add(accepted(run("in a batch"), 0.0), 0.0)
    one_by_one = runner_of(io)
    one_by_one.add(accepted(run("at once"), 0.0), 0.0)
    one_by_one.add(accepted(run("behind it"), 0.0), 0.0)
    runner_of(io).add(accepted(run("large", body=BODY), 0.0), 0.0)

    assert io.waiting == ["in a batch", "behind it", "large"]


def test_what_waits_too_long_is_refused(io: FakeRunnerIO) -> None:
    """A call that could not start in time is refused as expired, and never reaches the guest."""
    runner = runner_of(io)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.add(accepted(run("b", start_within_ms=100.0), 1.0), 1.0)

    runner.check_limits(1.05)
    assert not io.of(Refused)
    runner.check_limits(1.2)

    refused = io.last("b")
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.EXPIRED
    runner.on_result(Result(call_id="a"), 1.3)
    assert [frame.call_id for frame in io.of(Invoke)] == ["a"]


def test_time_counts_from_when_the_call_can_have_come(io: FakeRunnerIO) -> None:
    """After the process stood still, what is read then may be too old to start."""
    runner = runner_of(io)
    runner.add(accepted(run("a", start_within_ms=1_000.0), 10.0, 8.0), 10.0)

    refused = io.last("a")
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.EXPIRED


def test_the_slot_table_has_the_last_word_before_the_start(io: FakeRunnerIO) -> None:
    """What it calls gone is dropped without a word: whoever ended it has answered."""
    io.refuse_start = Refusal.GONE
    runner = runner_of(io)
    runner.add(accepted(run("a"), 1.0), 1.0)

    assert not io.sent
    assert not io.commands
    assert runner.is_idle


def test_a_large_input_is_fetched_first(io: FakeRunnerIO) -> None:
    """The guest gets it when it is here; the time it took is a stage of its own."""
    runner = runner_of(io)
    runner.add(accepted(run("a", input=b"", body=BODY), 1.0), 1.0)
    assert not io.commands

    runner.on_input(io.fetches[0], b"large", 1.2)
    runner.on_result(Result(call_id="a"), 1.3)

    assert io.of(Invoke)[0].input == b"large"
    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert ended.stages.fetch_ms == pytest.approx(200.0)


def test_an_input_that_cannot_be_had_is_refused(io: FakeRunnerIO) -> None:
    """It never started, so it may go elsewhere."""
    runner = runner_of(io)
    runner.add(accepted(run("a", input=b"", body=BODY), 1.0), 1.0)
    runner.on_input(io.fetches[0], None, 1.2)

    refused = io.last("a")
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.UNREADABLE


def test_a_fetch_that_ends_after_its_call_is_ignored(io: FakeRunnerIO) -> None:
    """The call was cancelled meanwhile."""
    runner = runner_of(io)
    runner.add(accepted(run("a", input=b"", body=BODY), 1.0), 1.0)
    runner.cancel("a", "cancelled", 1.1)
    runner.on_input(io.fetches[0], b"late", 1.2)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.started) == (Outcome.CANCELLED, False)
    assert not io.commands


def test_a_large_answer_is_left_with_the_origin(io: FakeRunnerIO) -> None:
    """The guest takes the next call meanwhile; the last frame says how large it was."""
    runner = runner_of(io)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.on_result(Result(call_id="a", output=b"x" * (INLINE_BYTES + 1)), 1.1)
    runner.add(accepted(run("b"), 1.1), 1.1)
    assert [frame.call_id for frame in io.of(Invoke)] == ["a", "b"]
    assert not io.of(Ended)

    runner.on_death("exit code 1", 1.2)
    runner.on_upload(io.uploads[0], taken=True, at=1.3)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.answer_size, ended.output) == (Outcome.OK, INLINE_BYTES + 1, b"")


@pytest.mark.parametrize(("most", "why"), [(INLINE_BYTES, f"{INLINE_BYTES} are the most"), (10**9, "did not take")])
def test_an_answer_that_nobody_takes_is_an_error(io: FakeRunnerIO, most: int, why: str) -> None:
    """The origin would not have it; one that is too large is told how large it may be."""
    runner = runner_of(io)
    runner.add(accepted(run("a", answer=msgspec.structs.replace(BODY, size=most)), 1.0), 1.0)
    runner.on_result(Result(call_id="a", output=b"x" * (INLINE_BYTES + 1)), 1.1)
    runner.on_upload(io.uploads[0], taken=False, at=1.3)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.answer_size, ended.output) == (Outcome.BAD_OUTPUT, 0, b"")
    assert why in str(ended.error)


def test_a_cancelled_call_that_runs_ends_when_the_guest_does(io: FakeRunnerIO) -> None:
    """Its answer is dropped, but not before it has come: until then the slot is in use."""
    runner = runner_of(io)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.cancel("a", "deadline", 1.1)
    runner.cancel("a", "again", 1.2)
    assert len(io.of(CancelCall)) == 1
    assert not io.of(Ended)

    runner.on_result(Result(call_id="a", output=b"\x01"), 1.3)

    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.started, ended.output, ended.reason) == (Outcome.CANCELLED, True, b"", "deadline")


def test_a_timeout_kills_the_container_and_names_the_late(io: FakeRunnerIO) -> None:
    """Those past the timeout timed out; the others died with the container; what had not started may go elsewhere."""
    runner = runner_of(io, max_inputs=2, timeout=1.0)
    runner.add(accepted(run("old"), 1.0), 1.0)
    runner.add(accepted(run("young"), 1.5), 1.5)
    runner.add(accepted(run("waits", start_within_ms=9_000.0), 1.6), 1.6)

    runner.check_limits(1.9)
    assert not io.kills
    runner.check_limits(2.1)
    assert "call old ran past its timeout of 1 s" in io.kills[0]
    runner.on_death(io.kills[0], 2.2)

    outcomes = {frame.call_id: (frame.outcome, frame.started) for frame in io.of(Ended)}
    assert outcomes == {
        "old": (Outcome.TIMEOUT, True),
        "young": (Outcome.DIED, True),
        "waits": (Outcome.DIED, False),
    }
    assert io.of(Ended)[0].reason == "the function ran past its timeout of 1 s"
    assert runner.is_idle


def test_a_guest_that_answers_for_others_is_killed(io: FakeRunnerIO) -> None:
    """Calls, batches and streams that it does not have."""
    runner = runner_of(io)
    runner.on_result(Result(call_id="unknown"), 1.0)
    runner.on_batch_result(BatchResult(batch=7, results=()), 1.0)
    runner.on_chunk(ChunkOut(call_id="unknown", seq=1, data=b""), 1.0)

    assert len(io.kills) == 3


def test_a_call_whose_deadline_is_long_past_is_cancelled(io: FakeRunnerIO) -> None:
    """Its origin would have said so, if it were alive."""
    runner = runner_of(io)
    runner.add(accepted(run("a", timeout_ms=1_000.0), 1.0), 1.0)

    runner.cancel_abandoned(2.0 + call_runner.ORPHANED_S - 0.1)
    assert not io.of(CancelCall)
    runner.cancel_abandoned(2.0 + call_runner.ORPHANED_S + 0.1)
    assert io.of(CancelCall)


def test_a_batch_forms_while_the_guest_works_on_another(io: FakeRunnerIO) -> None:
    """A full batch goes at once, the next when the guest is free, and each item has its share of it."""
    runner = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=50.0))
    for call in "abcd":
        runner.add(accepted(run(call), 1.0), 1.0)
    assert [[call for call, _ in batch.items] for batch in io.of(InvokeBatch)] == [["a", "b"]]
    assert io.pumps_at is None

    runner.on_batch_result(results(io.of(InvokeBatch)[0]), 1.1)

    assert [[call for call, _ in batch.items] for batch in io.of(InvokeBatch)] == [["a", "b"], ["c", "d"]]
    assert {frame.call_id for frame in io.of(Ended)} == {"a", "b"}
    assert {frame.spent.batch_size for frame in io.of(Ended) if frame.spent} == {2}
    runner.on_batch_result(results(io.of(InvokeBatch)[1]), 1.2)
    assert [(frame.call_id, frame.nth, frame.batch) for frame in io.of(Ended)] == [
        ("a", 1, 1), ("b", 2, 1), ("c", 3, 2), ("d", 4, 2)
    ]  # fmt: skip


def test_a_batch_that_is_not_full_waits_for_company(io: FakeRunnerIO) -> None:
    """The runner says when it must be woken, and how much more would fit."""
    runner = runner_of(io, batching=Batching(max_batch_size=4, wait_ms=50.0))
    runner.add(accepted(run("a"), 1.0), 1.0)
    assert io.pumps_at == pytest.approx(1.05)
    assert runner.batch_room == 3

    runner.pump(1.06)

    assert len(io.of(InvokeBatch)) == 1
    assert runner.batch_room == 0
    runner.on_batch_result(results(io.of(InvokeBatch)[0]), 1.1)
    assert [frame.batch for frame in io.of(Ended)] == [0]  # it ran alone


def test_a_draining_container_does_not_wait_for_company(io: FakeRunnerIO) -> None:
    """Nobody else comes."""
    runner = runner_of(io, batching=Batching(max_batch_size=4, wait_ms=60_000.0))
    runner.add(accepted(run("a", start_within_ms=90_000.0), 1.0), 1.0)
    runner.drain(1.01)

    assert len(io.of(InvokeBatch)) == 1


def test_one_bad_item_does_not_fail_its_neighbours(io: FakeRunnerIO) -> None:
    """Each item has its own outcome; a cancelled one is dropped, and only the agent says that a call timed out."""
    runner = runner_of(io, batching=Batching(max_batch_size=4, wait_ms=50.0))
    for call in "abcd":
        runner.add(accepted(run(call), 1.0), 1.0)
    runner.cancel("c", "cancelled", 1.05)
    items = (
        GuestItemResult(call_id="a", output=b"\x01"),
        GuestItemResult(call_id="b", outcome=Outcome.RAISED, error=ERROR),
        GuestItemResult(call_id="c", output=b"\x03"),
        GuestItemResult(call_id="d", outcome=Outcome.TIMEOUT, output=b"\x04"),
    )
    runner.on_batch_result(BatchResult(batch=1, results=items), 1.1)

    assert [frame.outcome for frame in io.of(Ended)] == ["ok", "raised", "cancelled", "bad_output"]
    assert [frame.output for frame in io.of(Ended)] == [b"\x01", b"", b"", b""]


def test_a_batch_that_raised_as_a_whole_is_tried_alone_once(io: FakeRunnerIO) -> None:
    """Item by item, without those that nobody wants any more; time counts anew for each."""
    runner = runner_of(io, batching=Batching(max_batch_size=3, wait_ms=50.0), idempotent=True, timeout=1.0)
    for call in "abc":
        runner.add(accepted(run(call, tell_start=True), 1.0), 1.0)
    failed = tuple(GuestItemResult(call_id=call, outcome=Outcome.RAISED, error=ERROR) for call in "abc")
    runner.on_batch_result(BatchResult(batch=1, results=failed, whole=True), 1.9)
    runner.cancel("b", "cancelled", 1.95)
    runner.check_limits(2.5)
    assert not io.kills

    runner.on_batch_result(BatchResult(batch=2, results=failed[:1], whole=True), 2.6)
    runner.on_batch_result(results(io.of(InvokeBatch)[2]), 2.7)

    assert [[call for call, _ in batch.items] for batch in io.of(InvokeBatch)] == [["a", "b", "c"], ["a"], ["c"]]
    outcomes = {frame.call_id: frame.outcome for frame in io.of(Ended)}
    assert outcomes == {"a": Outcome.RAISED, "b": Outcome.CANCELLED, "c": Outcome.OK}
    assert (io.splits, io.restarts) == ([["a", "b", "c"]], ["a", "c"])
    begun = [(frame.call_id, frame.batch) for frame in io.of(Started)]
    assert begun == [("a", 1), ("b", 1), ("c", 1), ("a", 0), ("c", 0)]  # alone it is no part of a batch
    assert {frame.call_id: frame.batch for frame in io.of(Ended)} == {"a": 0, "b": 1, "c": 0}
    assert runner.is_idle


def test_a_batch_whose_results_are_not_its_items_kills_the_container(io: FakeRunnerIO) -> None:
    """One answer for each item, in order."""
    runner = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=50.0))
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.add(accepted(run("b"), 1.0), 1.0)
    runner.on_batch_result(
        BatchResult(batch=1, results=(GuestItemResult(call_id="b"), GuestItemResult(call_id="a"))), 1.1
    )

    assert io.kills == ["the guest answered a batch that it does not have"]


def test_all_of_a_batch_may_be_too_late(io: FakeRunnerIO) -> None:
    """Then the guest gets nothing, and the method is free for the next batch."""
    runner = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=50.0))
    runner.add(accepted(run("a", start_within_ms=1_000.0), 5.0, 1.0), 5.0)
    runner.add(accepted(run("b", start_within_ms=1_000.0), 5.0, 1.0), 5.0)
    runner.add(accepted(run("c"), 5.0), 5.0)
    runner.add(accepted(run("d"), 5.0), 5.0)

    assert {frame.call_id for frame in io.of(Refused)} == {"a", "b"}
    assert [[call for call, _ in batch.items] for batch in io.of(InvokeBatch)] == [["c", "d"]]


def test_calls_of_a_gateway_can_be_found(io: FakeRunnerIO) -> None:
    """To cancel them when it is gone."""
    runner = runner_of(io, max_inputs=2)
    runner.add(accepted(run("a"), 1.0), 1.0)
    assert runner.only_call() == "a"
    runner.add(accepted(run("b", gateway="other"), 1.0), 1.0)

    assert runner.calls_of("other") == ["b"]
    assert runner.only_call() == ""
    assert runner.held == ("a", "b")
    assert runner.holds("a")


def test_a_container_that_is_being_killed_starts_nothing(io: FakeRunnerIO) -> None:
    """An answer that was on its way is delivered; what waits has not started, and may go elsewhere."""
    runner = runner_of(io)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.add(accepted(run("b"), 1.0), 1.0)
    runner.halt()
    runner.on_result(Result(call_id="a"), 1.1)
    runner.on_death("stopped", 1.2)

    assert {f.call_id: (f.outcome, f.started) for f in io.of(Ended)} == {
        "a": (Outcome.OK, True),
        "b": (Outcome.DIED, False),
    }


def test_what_is_billed_elsewhere_is_not_billed_again(io: FakeRunnerIO) -> None:
    """A call that was lost with a silent node: for as long as it was there; one that ends before was all done there."""
    runner = runner_of(io)
    runner.add(accepted(run("a", lost_ms=2_000.0), 1.0), 1.0)
    runner.check_limits(2.9)
    assert io.repeated == []
    runner.check_limits(3.0)
    assert io.repeated == ["a"]
    runner.on_result(Result(call_id="a"), 4.0)
    runner.add(accepted(run("b", lost_ms=2_000.0), 5.0), 5.0)
    runner.on_result(Result(call_id="b"), 6.0)
    runner.check_limits(9.0)

    assert io.repeated == ["a", "b"]


def test_a_batch_that_is_split_is_billed_for_what_its_items_do_alone(io: FakeRunnerIO) -> None:
    """What they have repeated was in the batch, which is not theirs to pay."""
    runner = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=50.0), idempotent=True)
    for call in "ab":
        runner.add(accepted(run(call, lost_ms=2_000.0), 1.0), 1.0)
    failed = tuple(GuestItemResult(call_id=call, outcome=Outcome.RAISED, error=ERROR) for call in "ab")
    runner.on_batch_result(BatchResult(batch=1, results=failed, whole=True), 1.9)
    runner.check_limits(9.0)

    assert (io.splits, io.repeated) == ([["a", "b"]], [])


def test_the_guest_gets_the_trace_that_a_call_came_in(io: FakeRunnerIO) -> None:
    """Of a batch that of each item, if any has one; most have none, of which nothing is sent."""
    alone = runner_of(io)
    alone.add(accepted(run("a", traceparent=TRACE), 1.0), 1.0)
    assert [frame.traceparent for frame in io.of(Invoke)] == [TRACE]

    for came, told in ((TRACE, ("", TRACE)), ("", ())):
        runner = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=50.0))
        runner.add(accepted(run(f"b{came}"), 1.0), 1.0)
        runner.add(accepted(run(f"c{came}", traceparent=came), 1.0), 1.0)
        assert io.of(InvokeBatch)[-1].traceparents == told


def test_of_a_batch_the_others_are_told_with_a_call_that_is_traced(io: FakeRunnerIO) -> None:
    """And nothing of them is held beyond its end."""
    runner, batch = runner_of(io, batching=Batching(max_batch_size=2, wait_ms=50.0)), []
    for call, came in (("a", f"{TRACE[:-2]}01"), ("b", "")):
        batch.append(accepted(run(call, traceparent=came), 1.0))
        runner.add(batch[-1], 1.0)
    runner.on_batch_result(results(io.of(InvokeBatch)[0]), 1.1)
    assert [ended.mates for ended in io.of(Ended)] == [(context_within("b", "").header,), ()]
    assert not any(call.mates for call in batch)


def test_limits_are_looked_at_when_one_may_be_reached(io: FakeRunnerIO) -> None:
    """Never without calls, at the timeout of the oldest that runs, and always while one waits for the guest."""
    runner = runner_of(io, max_inputs=2, timeout=1.0)
    assert runner.next_limit_at(1.0) == math.inf
    runner.add(accepted(run("old"), 1.0), 1.0)
    runner.add(accepted(run("young"), 1.5), 1.5)
    assert runner.next_limit_at(1.6) == 2.0
    runner.add(accepted(run("waits"), 1.6), 1.6)
    assert runner.next_limit_at(1.7) == 1.7
    runner.on_result(Result(call_id="old"), 1.8)
    assert runner.next_limit_at(1.9) == 2.5
