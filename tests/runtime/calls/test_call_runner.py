"""A container's calls: every path from acceptance to the last frame, on a fake world."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.agent_messages import (
    BodyRef,
    Chunk,
    Ended,
    Outcome,
    Refusal,
    Refused,
    RemoteError,
    Started,
)
from pilotlight_core.model.spec import Batching, Mode
from pilotlight_runtime.calls import call_runner
from pilotlight_runtime.calls.call_runner import INLINE_BYTES, truncated_error
from pilotlight_runtime.guest.frames import (
    MAX_CHUNK,
    BatchResult,
    CancelCall,
    ChunkOut,
    GuestItemResult,
    Invoke,
    InvokeBatch,
    Result,
    WindowUpdate,
)
from tests.builders.calls import run
from tests.runtime.fake_rim import FakeRim, runner_of

BODY = BodyRef(url="http://origin/bodies/x", token="x", size=10)
ERROR = RemoteError("ValueError", "no")


@pytest.fixture
def rim() -> FakeRim:
    return FakeRim()


def results(batch: InvokeBatch, **more: object) -> BatchResult:
    """An answer of OK to every item."""
    items = tuple(GuestItemResult(call=call, output=b"\x01") for call, _ in batch.items)
    return BatchResult(batch=batch.batch, results=items, execute_ns=5_000_000, **more)  # type: ignore[arg-type]


def test_a_call_is_started_before_the_guest_gets_it(rim: FakeRim) -> None:
    """An origin that asks hears Started, the guest gets the input, the answer is the last frame, the slot is free."""
    runner = runner_of(rim)
    runner.take(run("a", tell_start=True), 1.0, 1.0)
    runner.answered(Result(call="a", output=b"\x2a", execute_ns=2_000_000), 1.5)

    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.started, ended.output) == (Outcome.OK, True, b"\x2a")
    assert (ended.stages.execute, ended.stages.total) == (2.0, 500.0)
    assert [frame.call for frame in rim.of(Started)] == ["a"]
    assert [frame.input for frame in rim.of(Invoke)] == [b"\x80"]
    assert rim.freed_calls == ["a"]


def test_a_start_of_which_nobody_asks_is_not_told(rim: FakeRim) -> None:
    """One frame for a call, its last."""
    runner = runner_of(rim)
    runner.take(run("a"), 1.0, 1.0)
    runner.answered(Result(call="a", output=b"\x2a", execute_ns=2_000_000), 1.5)

    assert [type(frame) for frame in rim.told] == [Ended]
    assert runner.idle


def test_the_guests_word_on_its_time_is_bounded_by_ours(rim: FakeRim) -> None:
    """A guest cannot claim more time than has passed."""
    runner = runner_of(rim)
    runner.take(run("a"), 1.0, 1.0)
    runner.answered(Result(call="a", execute_ns=10**15), 1.25)

    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert ended.stages.execute == 250.0


def test_the_guest_gets_as_much_as_it_works_on_at_a_time(rim: FakeRim) -> None:
    """Beyond max_inputs calls wait in order."""
    runner = runner_of(rim, max_inputs=2)
    for call in "abc":
        runner.take(run(call), 1.0, 1.0)
    assert [frame.call for frame in rim.of(Invoke)] == ["a", "b"]

    runner.answered(Result(call="b"), 1.1)

    assert [frame.call for frame in rim.of(Invoke)] == ["a", "b", "c"]
    assert runner.running == 2


def test_what_does_not_start_at_once_is_noted(rim: FakeRim) -> None:
    """A batch that forms, a turn that is waited for, an input on its way; what starts at once needs no note."""
    runner_of(rim, batching=Batching(max_batch_size=2, wait_ms=50)).take(run("in a batch"), 0.0, 0.0)
    one_by_one = runner_of(rim)
    one_by_one.take(run("at once"), 0.0, 0.0)
    one_by_one.take(run("behind it"), 0.0, 0.0)
    runner_of(rim).take(run("large", body=BodyRef("http://gw/1", "t")), 0.0, 0.0)

    assert rim.waiting == ["in a batch", "behind it", "large"]


def test_what_waits_too_long_is_refused(rim: FakeRim) -> None:
    """A call that could not start in time is refused as expired, and never reaches the guest."""
    runner = runner_of(rim)
    runner.take(run("a"), 1.0, 1.0)
    runner.take(run("b", start_within_ms=100.0), 1.0, 1.0)

    runner.sweep(1.05)
    assert not rim.of(Refused)
    runner.sweep(1.2)

    refused = rim.last("b")
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.EXPIRED
    runner.answered(Result(call="a"), 1.3)
    assert [frame.call for frame in rim.of(Invoke)] == ["a"]


def test_time_counts_from_when_the_call_can_have_come(rim: FakeRim) -> None:
    """After the process stood still, what is read then may be too old to start."""
    runner = runner_of(rim)
    runner.take(run("a", start_within_ms=1_000.0), 10.0, 8.0)

    refused = rim.last("a")
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.EXPIRED


def test_the_slot_table_has_the_last_word_before_the_start(rim: FakeRim) -> None:
    """What it calls gone is dropped without a word: whoever ended it has answered."""
    rim.refuse_start = Refusal.GONE
    runner = runner_of(rim)
    runner.take(run("a"), 1.0, 1.0)

    assert not rim.told
    assert not rim.commands
    assert runner.idle


def test_a_large_input_is_fetched_first(rim: FakeRim) -> None:
    """The guest gets it when it is here; the time it took is a stage of its own."""
    runner = runner_of(rim)
    runner.take(run("a", input=b"", body=BODY), 1.0, 1.0)
    assert not rim.commands

    runner.fetched(rim.fetches[0], b"large", 1.2)
    runner.answered(Result(call="a"), 1.3)

    assert rim.of(Invoke)[0].input == b"large"
    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert ended.stages.fetch == pytest.approx(200.0)


def test_an_input_that_cannot_be_had_is_refused(rim: FakeRim) -> None:
    """It never started, so it may go elsewhere."""
    runner = runner_of(rim)
    runner.take(run("a", input=b"", body=BODY), 1.0, 1.0)
    runner.fetched(rim.fetches[0], None, 1.2)

    refused = rim.last("a")
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.UNREADABLE


def test_a_fetch_that_ends_after_its_call_is_ignored(rim: FakeRim) -> None:
    """The call was cancelled meanwhile."""
    runner = runner_of(rim)
    runner.take(run("a", input=b"", body=BODY), 1.0, 1.0)
    runner.cancel("a", "cancelled", 1.1)
    runner.fetched(rim.fetches[0], b"late", 1.2)

    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.started) == (Outcome.CANCELLED, False)
    assert not rim.commands


def test_a_large_answer_is_left_with_the_origin(rim: FakeRim) -> None:
    """The guest takes the next call meanwhile; the last frame says how large it was."""
    runner = runner_of(rim)
    runner.take(run("a"), 1.0, 1.0)
    runner.answered(Result(call="a", output=b"x" * (INLINE_BYTES + 1)), 1.1)
    runner.take(run("b"), 1.1, 1.1)
    assert [frame.call for frame in rim.of(Invoke)] == ["a", "b"]
    assert not rim.of(Ended)

    runner.died("exit code 1", 1.2)
    runner.left(rim.leaves[0], 1.3, taken=True)

    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.answer_size, ended.output) == (Outcome.OK, INLINE_BYTES + 1, b"")


@pytest.mark.parametrize(("most", "why"), [(INLINE_BYTES, f"{INLINE_BYTES} are the most"), (10**9, "did not take")])
def test_an_answer_that_nobody_takes_is_an_error(rim: FakeRim, most: int, why: str) -> None:
    """The origin would not have it; one that is too large is told how large it may be."""
    runner = runner_of(rim)
    runner.take(run("a", answer=BodyRef(url="http://origin/answers/x", token="x", size=most)), 1.0, 1.0)
    runner.answered(Result(call="a", output=b"x" * (INLINE_BYTES + 1)), 1.1)
    runner.left(rim.leaves[0], 1.3, taken=False)

    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.BAD_OUTPUT
    assert why in str(ended.error)


def test_a_cancelled_call_that_runs_ends_when_the_guest_does(rim: FakeRim) -> None:
    """Its answer is dropped, but not before it has come: until then the slot is in use."""
    runner = runner_of(rim)
    runner.take(run("a"), 1.0, 1.0)
    runner.cancel("a", "deadline", 1.1)
    runner.cancel("a", "again", 1.2)
    assert len(rim.of(CancelCall)) == 1
    assert not rim.of(Ended)

    runner.answered(Result(call="a", output=b"\x01"), 1.3)

    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.started, ended.output, ended.reason) == (Outcome.CANCELLED, True, b"", "deadline")


def test_a_timeout_kills_the_container_and_names_the_late(rim: FakeRim) -> None:
    """Those past the timeout timed out; the others died with the container; what had not started may go elsewhere."""
    runner = runner_of(rim, max_inputs=2, timeout=1.0)
    runner.take(run("old"), 1.0, 1.0)
    runner.take(run("young"), 1.5, 1.5)
    runner.take(run("waits", start_within_ms=9_000.0), 1.6, 1.6)

    runner.sweep(1.9)
    assert not rim.killed
    runner.sweep(2.1)
    assert "call old ran past its timeout of 1 s" in rim.killed[0]
    runner.died(rim.killed[0], 2.2)

    outcomes = {frame.call: (frame.outcome, frame.started) for frame in rim.of(Ended)}
    assert outcomes == {
        "old": (Outcome.TIMEOUT, True),
        "young": (Outcome.DIED, True),
        "waits": (Outcome.DIED, False),
    }
    assert rim.of(Ended)[0].reason == "the function ran past its timeout of 1 s"
    assert runner.idle


def test_chunks_are_passed_on_in_order(rim: FakeRim) -> None:
    """And the window moves with what the origin has passed on."""
    runner = runner_of(rim, mode=Mode.GENERATOR)
    runner.take(run("a", window=2), 1.0, 1.0)
    runner.chunk(ChunkOut(call="a", seq=1, data=b"1"), 1.1)
    runner.window("a", 1, 1.15)
    runner.window("a", 5, 1.15)  # nobody can have passed on what was never sent
    runner.chunk(ChunkOut(call="a", seq=2, data=b"2"), 1.2)
    runner.answered(Result(call="a", last_seq=2), 1.3)

    assert [chunk.data for chunk in rim.of(Chunk)] == [b"1", b"2"]
    assert [update.upto for update in rim.of(WindowUpdate)] == [1]
    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert ended.last_seq == 2


@pytest.mark.parametrize("seq", [0, 2, 3])
def test_a_guest_that_breaks_the_order_is_killed(rim: FakeRim, seq: int) -> None:
    """Nothing a guest sends is trusted."""
    runner = runner_of(rim, mode=Mode.GENERATOR)
    runner.take(run("a", window=2), 1.0, 1.0)
    runner.chunk(ChunkOut(call="a", seq=seq, data=b""), 1.1)

    assert rim.killed == ["the guest streamed out of order or beyond its window"]


def test_a_guest_that_exceeds_its_window_is_killed(rim: FakeRim) -> None:
    """The window protects the origin's memory."""
    runner = runner_of(rim, mode=Mode.GENERATOR)
    runner.take(run("a", window=1), 1.0, 1.0)
    runner.chunk(ChunkOut(call="a", seq=1, data=b""), 1.1)
    runner.chunk(ChunkOut(call="a", seq=2, data=b""), 1.1)

    assert len(rim.killed) == 1


def test_a_guest_that_answers_for_others_is_killed(rim: FakeRim) -> None:
    """Calls, batches and streams that it does not have."""
    runner = runner_of(rim)
    runner.answered(Result(call="unknown"), 1.0)
    runner.batch_answered(BatchResult(batch=7, results=()), 1.0)
    runner.chunk(ChunkOut(call="unknown", seq=1, data=b""), 1.0)

    assert len(rim.killed) == 3


def test_a_guest_that_sends_a_chunk_too_large_is_killed(rim: FakeRim) -> None:
    """Our own guest refuses such a value itself."""
    runner = runner_of(rim, mode=Mode.GENERATOR)
    runner.take(run("a"), 1.0, 1.0)
    runner.chunk(ChunkOut(call="a", seq=1, data=b"x" * (MAX_CHUNK + 1)), 1.1)

    assert not rim.of(Chunk)
    assert rim.killed == [f"the guest sent a chunk of {MAX_CHUNK + 1} bytes, {MAX_CHUNK} is the most"]


def test_a_decided_stream_is_dropped_within_its_window_and_killed_beyond(rim: FakeRim) -> None:
    """What was on its way is no crime; a guest that streams on is flooding us."""
    runner = runner_of(rim, mode=Mode.GENERATOR)
    runner.take(run("a", window=3), 1.0, 1.0)
    runner.chunk(ChunkOut(call="a", seq=1, data=b"1"), 1.1)
    runner.cancel("a", "not wanted", 1.2)
    runner.chunk(ChunkOut(call="a", seq=2, data=b"2"), 1.3)
    runner.chunk(ChunkOut(call="a", seq=3, data=b"3"), 1.3)
    assert not rim.killed

    runner.chunk(ChunkOut(call="a", seq=4, data=b"4"), 1.3)
    assert rim.killed == ["the guest streamed out of order or beyond its window"]
    runner.halt()
    runner.chunk(ChunkOut(call="a", seq=5, data=b"5"), 1.3)
    runner.died("flooded", 1.4)

    assert len(rim.killed) == 1  # once is enough
    assert [chunk.seq for chunk in rim.of(Chunk)] == [1]
    ended = rim.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.last_seq) == (Outcome.CANCELLED, 1)


def test_a_decided_stream_may_not_repeat_itself(rim: FakeRim) -> None:
    """A chunk that is sent again would never reach the end of the window."""
    runner = runner_of(rim, mode=Mode.GENERATOR)
    runner.take(run("a"), 1.0, 1.0)
    runner.cancel("a", "not wanted", 1.2)
    runner.chunk(ChunkOut(call="a", seq=1, data=b""), 1.3)
    runner.chunk(ChunkOut(call="a", seq=1, data=b""), 1.3)

    assert len(rim.killed) == 1


def test_a_stream_that_nobody_reads_is_cancelled(rim: FakeRim) -> None:
    """A full window for a minute means that there is no reader."""
    runner = runner_of(rim, mode=Mode.GENERATOR)
    runner.take(run("a", window=1, timeout_ms=1e9), 1.0, 1.0)
    runner.chunk(ChunkOut(call="a", seq=1, data=b""), 2.0)

    runner.review(2.0 + call_runner.STALLED_S - 1)
    assert not rim.of(CancelCall)
    runner.review(2.0 + call_runner.STALLED_S + 1)
    assert rim.of(CancelCall)


def test_a_call_whose_deadline_is_long_past_is_cancelled(rim: FakeRim) -> None:
    """Its origin would have said so, if it were alive."""
    runner = runner_of(rim)
    runner.take(run("a", timeout_ms=1_000.0), 1.0, 1.0)

    runner.review(2.0 + call_runner.ORPHANED_S - 0.1)
    assert not rim.of(CancelCall)
    runner.review(2.0 + call_runner.ORPHANED_S + 0.1)
    assert rim.of(CancelCall)


def test_a_batch_forms_while_the_guest_works_on_another(rim: FakeRim) -> None:
    """A full batch goes at once, the next when the guest is free, and each item has its share of it."""
    runner = runner_of(rim, batching=Batching(max_batch_size=2, wait_ms=50.0))
    for call in "abcd":
        runner.take(run(call), 1.0, 1.0)
    assert [[call for call, _ in batch.items] for batch in rim.of(InvokeBatch)] == [["a", "b"]]
    assert rim.wake_at is None

    runner.batch_answered(results(rim.of(InvokeBatch)[0]), 1.1)

    assert [[call for call, _ in batch.items] for batch in rim.of(InvokeBatch)] == [["a", "b"], ["c", "d"]]
    assert {frame.call for frame in rim.of(Ended)} == {"a", "b"}
    assert {frame.spent.batch_size for frame in rim.of(Ended) if frame.spent} == {2}


def test_a_batch_that_is_not_full_waits_for_company(rim: FakeRim) -> None:
    """The runner says when it must be woken, and how much more would fit."""
    runner = runner_of(rim, batching=Batching(max_batch_size=4, wait_ms=50.0))
    runner.take(run("a"), 1.0, 1.0)
    assert rim.wake_at == pytest.approx(1.05)
    assert runner.batch_room == 3

    runner.pump(1.06)

    assert len(rim.of(InvokeBatch)) == 1
    assert runner.batch_room == 0


def test_a_draining_container_does_not_wait_for_company(rim: FakeRim) -> None:
    """Nobody else comes."""
    runner = runner_of(rim, batching=Batching(max_batch_size=4, wait_ms=60_000.0))
    runner.take(run("a", start_within_ms=90_000.0), 1.0, 1.0)
    runner.drain(1.01)

    assert len(rim.of(InvokeBatch)) == 1


def test_one_bad_item_does_not_fail_its_neighbours(rim: FakeRim) -> None:
    """Each item has its own outcome; a cancelled one is dropped."""
    runner = runner_of(rim, batching=Batching(max_batch_size=3, wait_ms=50.0))
    for call in "abc":
        runner.take(run(call), 1.0, 1.0)
    runner.cancel("c", "cancelled", 1.05)
    items = (
        GuestItemResult(call="a", output=b"\x01"),
        GuestItemResult(call="b", outcome=Outcome.RAISED, error=ERROR),
        GuestItemResult(call="c", output=b"\x03"),
    )
    runner.batch_answered(BatchResult(batch=1, results=items), 1.1)

    assert [frame.outcome for frame in rim.of(Ended)] == [Outcome.OK, Outcome.RAISED, Outcome.CANCELLED]


def test_a_batch_that_raised_as_a_whole_is_tried_alone_once(rim: FakeRim) -> None:
    """Item by item, without those that nobody wants any more; time counts anew for each."""
    runner = runner_of(rim, batching=Batching(max_batch_size=3, wait_ms=50.0), idempotent=True, timeout=1.0)
    for call in "abc":
        runner.take(run(call), 1.0, 1.0)
    failed = tuple(GuestItemResult(call=call, outcome=Outcome.RAISED, error=ERROR) for call in "abc")
    runner.batch_answered(BatchResult(batch=1, results=failed, whole=True), 1.9)
    runner.cancel("b", "cancelled", 1.95)
    runner.sweep(2.5)
    assert not rim.killed

    runner.batch_answered(BatchResult(batch=2, results=failed[:1], whole=True), 2.6)
    runner.batch_answered(results(rim.of(InvokeBatch)[2]), 2.7)

    assert [[call for call, _ in batch.items] for batch in rim.of(InvokeBatch)] == [["a", "b", "c"], ["a"], ["c"]]
    outcomes = {frame.call: frame.outcome for frame in rim.of(Ended)}
    assert outcomes == {"a": Outcome.RAISED, "b": Outcome.CANCELLED, "c": Outcome.OK}
    assert runner.idle


def test_a_batch_whose_results_are_not_its_items_kills_the_container(rim: FakeRim) -> None:
    """One answer for each item, in order."""
    runner = runner_of(rim, batching=Batching(max_batch_size=2, wait_ms=50.0))
    runner.take(run("a"), 1.0, 1.0)
    runner.take(run("b"), 1.0, 1.0)
    runner.batch_answered(BatchResult(batch=1, results=(GuestItemResult(call="b"), GuestItemResult(call="a"))), 1.1)

    assert rim.killed == ["the guest answered a batch that it does not have"]


def test_all_of_a_batch_may_be_too_late(rim: FakeRim) -> None:
    """Then the guest gets nothing, and the method is free for the next batch."""
    runner = runner_of(rim, batching=Batching(max_batch_size=2, wait_ms=50.0))
    runner.take(run("a", start_within_ms=1_000.0), 5.0, 1.0)
    runner.take(run("b", start_within_ms=1_000.0), 5.0, 1.0)
    runner.take(run("c"), 5.0, 5.0)
    runner.take(run("d"), 5.0, 5.0)

    assert {frame.call for frame in rim.of(Refused)} == {"a", "b"}
    assert [[call for call, _ in batch.items] for batch in rim.of(InvokeBatch)] == [["c", "d"]]


def test_calls_of_a_gateway_can_be_found(rim: FakeRim) -> None:
    """To cancel them when it is gone."""
    runner = runner_of(rim, max_inputs=2)
    runner.take(run("a"), 1.0, 1.0)
    assert runner.only_call() == "a"
    runner.take(run("b", gateway="other"), 1.0, 1.0)

    assert runner.calls_of("other") == ["b"]
    assert runner.only_call() == ""
    assert runner.held == ("a", "b")
    assert runner.holds("a")


def test_an_exceptions_text_is_bounded() -> None:
    """A traceback of megabytes would not fit a frame."""
    error = truncated_error(RemoteError("E" * 10_000, "m" * 10_000, "t" * 100_000 + "end"))

    assert error is not None
    assert len(error.type) == call_runner.TYPE_CHARS
    assert len(error.message) == call_runner.MESSAGE_CHARS
    assert error.traceback.endswith("end")
    assert truncated_error(ERROR) == ERROR


def test_a_container_that_is_being_killed_starts_nothing(rim: FakeRim) -> None:
    """An answer that was on its way is delivered; what waits has not started, and may go elsewhere."""
    runner = runner_of(rim)
    runner.take(run("a"), 1.0, 1.0)
    runner.take(run("b"), 1.0, 1.0)
    runner.halt()
    runner.answered(Result(call="a"), 1.1)
    runner.died("stopped", 1.2)

    assert {f.call: (f.outcome, f.started) for f in rim.of(Ended)} == {
        "a": (Outcome.OK, True),
        "b": (Outcome.DIED, False),
    }
