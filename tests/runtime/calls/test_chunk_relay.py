"""Streams of a container: order, windows, and readers that are gone."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.call_messages import (
    LEAST_AHEAD,
    WINDOW,
    Chunk,
    Ended,
    Outcome,
    ResumePoint,
    StreamCheckpoint,
)
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.streams.resuming import MAX_STATE
from pilotlight_runtime.calls.chunk_relay import STALLED_S
from pilotlight_runtime.calls.slot_table import CHECKPOINT_ROOM
from pilotlight_runtime.guest.frames import (
    LEFT_BYTES,
    MAX_CHUNK,
    RUN_CHUNKS,
    CancelCall,
    CheckpointOut,
    ChunkOut,
    ChunkRun,
    ChunksOut,
    Invoke,
    Result,
    StreamStart,
    WindowUpdate,
)
from tests.builders.calls import run
from tests.runtime.fake_runner_io import FakeRunnerIO, accepted, runner_of


@pytest.fixture
def io() -> FakeRunnerIO:
    return FakeRunnerIO()


def test_chunks_are_passed_on_in_order(io: FakeRunnerIO) -> None:
    """And the window moves with what the origin has passed on."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=2), 1.0), 1.0)
    runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b"1"), 1.1)
    runner.on_window("a", 1, 1.15)
    runner.on_window("a", 5, 1.15)  # nobody can have passed on what was never sent
    runner.on_chunk(ChunkOut(call_id="a", seq=2, data=b"2"), 1.2)
    runner.on_result(Result(call_id="a", last_seq=2), 1.3)

    assert [chunk.data for chunk in io.of(Chunk)] == [b"1", b"2"]
    assert [update.upto for update in io.of(WindowUpdate)] == [1]
    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert ended.last_seq == 2


@pytest.mark.parametrize("seq", [0, 2, 3])
def test_a_guest_that_breaks_the_order_is_killed(io: FakeRunnerIO, seq: int) -> None:
    """Nothing a guest sends is trusted."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=2), 1.0), 1.0)
    runner.on_chunk(ChunkOut(call_id="a", seq=seq, data=b""), 1.1)

    assert io.kills == ["the guest streamed out of order or beyond its window"]


def test_a_guest_that_exceeds_its_window_is_killed(io: FakeRunnerIO) -> None:
    """The window protects the origin's memory."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=1), 1.0), 1.0)
    runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b""), 1.1)
    runner.on_chunk(ChunkOut(call_id="a", seq=2, data=b""), 1.1)

    assert len(io.kills) == 1


def test_only_small_chunks_go_far_ahead(io: FakeRunnerIO) -> None:
    """Up to the window; from the first larger one on no more than LEAST_AHEAD, so memory stays bounded."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=WINDOW), 1.0), 1.0)
    for seq in range(1, WINDOW + 1):
        runner.on_chunk(ChunkOut(call_id="a", seq=seq, data=b"x"), 1.1)
    assert not io.kills

    runner.on_window("a", WINDOW - LEAST_AHEAD + 1, 1.2)
    runner.on_chunk(ChunkOut(call_id="a", seq=WINDOW + 1, data=bytes(MAX_CHUNK)), 1.3)
    assert not io.kills
    runner.on_chunk(ChunkOut(call_id="a", seq=WINDOW + 2, data=b"x"), 1.3)
    assert io.kills == ["the guest streamed out of order or beyond its window"]


def test_a_stream_that_waits_to_send_a_large_chunk_is_seen_as_stalled(io: FakeRunnerIO) -> None:
    """Its window is not full of small ones; nothing is read all the same."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=WINDOW, timeout_ms=1e9), 1.0), 1.0)
    for seq in range(1, LEAST_AHEAD + 1):
        runner.on_chunk(ChunkOut(call_id="a", seq=seq, data=b"x"), 2.0)

    runner.cancel_abandoned(2.0 + STALLED_S + 1)
    assert io.of(CancelCall)


def test_a_guest_that_sends_a_chunk_too_large_is_killed(io: FakeRunnerIO) -> None:
    """Our own guest refuses such a value itself."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b"x" * (MAX_CHUNK + 1)), 1.1)

    assert not io.of(Chunk)
    assert io.kills == [f"the guest sent a chunk of {MAX_CHUNK + 1} bytes, {MAX_CHUNK} is the most"]


def test_a_decided_stream_is_dropped_within_its_window_and_killed_beyond(io: FakeRunnerIO) -> None:
    """What was on its way is no crime; a guest that streams on is flooding us."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=3), 1.0), 1.0)
    runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b"1"), 1.1)
    runner.cancel("a", "not wanted", 1.2)
    runner.on_chunk(ChunkOut(call_id="a", seq=2, data=b"2"), 1.3)
    runner.on_chunk(ChunkOut(call_id="a", seq=3, data=b"3"), 1.3)
    assert not io.kills

    runner.on_chunk(ChunkOut(call_id="a", seq=4, data=b"4"), 1.3)
    assert io.kills == ["the guest streamed out of order or beyond its window"]
    runner.halt()
    runner.on_chunk(ChunkOut(call_id="a", seq=5, data=b"5"), 1.3)
    runner.on_death("flooded", 1.4)

    assert len(io.kills) == 1  # once is enough
    assert [chunk.seq for chunk in io.of(Chunk)] == [1]
    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.last_seq) == (Outcome.CANCELLED, 1)


def test_a_decided_stream_may_not_repeat_itself(io: FakeRunnerIO) -> None:
    """A chunk that is sent again would never reach the end of the window."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a"), 1.0), 1.0)
    runner.cancel("a", "not wanted", 1.2)
    runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b""), 1.3)
    runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b""), 1.3)

    assert len(io.kills) == 1


def test_a_stream_that_nobody_reads_is_cancelled(io: FakeRunnerIO) -> None:
    """A full window for a minute means that there is no reader."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=1, timeout_ms=1e9), 1.0), 1.0)
    runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b""), 2.0)

    runner.cancel_abandoned(2.0 + STALLED_S - 1)
    assert not io.of(CancelCall)
    runner.cancel_abandoned(2.0 + STALLED_S + 1)
    assert io.of(CancelCall)


RESUMED = ResumePoint(after=4, state=b"four", sent=6, repeat_ms=2_000.0, resumed=True)


def test_a_stream_that_goes_on_counts_from_where_it_was(io: FakeRunnerIO) -> None:
    """The guest gets the state; what its caller has is repeated on the operator's time."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=4, resume=RESUMED), 1.0), 1.0)
    (invoke,) = io.of(Invoke)
    assert invoke.resume == StreamStart(after=4, state=b"four")
    runner.on_chunk(ChunkOut(call_id="a", seq=5, data=b"5"), 1.1)
    assert not io.repeated
    runner.on_chunk(ChunkOut(call_id="a", seq=6, data=b"6"), 1.2)
    assert io.repeated == ["a"]
    runner.on_chunk(ChunkOut(call_id="a", seq=7, data=b"7"), 1.3)
    runner.on_result(Result(call_id="a", last_seq=7), 1.4)

    assert [chunk.seq for chunk in io.of(Chunk)] == [5, 6, 7]
    assert not io.kills
    ended = io.last("a")
    assert isinstance(ended, Ended)
    assert ended.last_seq == 7


def test_checkpoints_are_passed_on_in_order(io: FakeRunnerIO) -> None:
    """Behind the chunks that they have in them."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", resume=ResumePoint()), 1.0), 1.0)
    runner.on_checkpoint(CheckpointOut(call_id="a", seq=0, state=b"0"), 1.1)
    runner.on_chunk(ChunkOut(call_id="a", seq=1, data=b"1"), 1.2)
    runner.on_checkpoint(CheckpointOut(call_id="a", seq=1, state=b"1"), 1.3)
    runner.cancel("a", "no more", 1.4)
    runner.on_checkpoint(CheckpointOut(call_id="a", seq=1, state=b"late"), 1.5)

    told = [(type(frame).__name__, frame.seq) for frame in io.sent if isinstance(frame, Chunk | StreamCheckpoint)]
    assert told == [("StreamCheckpoint", 0), ("Chunk", 1), ("StreamCheckpoint", 1)]
    assert not io.kills


@pytest.mark.parametrize(
    ("resume", "seq", "size", "says"),
    [
        (None, 0, 1, "for a call that is not resumable"),
        (ResumePoint(), 1, 1, "a state of 1 bytes behind chunk 1, its last is 0"),
        (ResumePoint(), 0, MAX_STATE + 1, f"a state of {MAX_STATE + 1} bytes"),
    ],
)
def test_a_guest_that_saves_what_it_may_not_is_killed(
    io: FakeRunnerIO, resume: ResumePoint | None, seq: int, size: int, says: str
) -> None:
    """Nothing a guest sends is trusted."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", resume=resume), 1.0), 1.0)
    runner.on_checkpoint(CheckpointOut(call_id="a", seq=seq, state=b"x" * size), 1.1)

    assert says in io.kills[0]
    assert not io.of(StreamCheckpoint)


def test_a_guest_that_saves_without_end_is_killed(io: FakeRunnerIO) -> None:
    """Each costs its node and its gateway; time and chunks make room for more."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", resume=ResumePoint()), 1.0), 1.0)
    for number in range(100):
        runner.on_checkpoint(CheckpointOut(call_id="a", seq=0, state=b"x"), 1.0 + number)
    assert not io.kills
    for _ in range(int(CHECKPOINT_ROOM) + 1):
        runner.on_checkpoint(CheckpointOut(call_id="a", seq=0, state=b"x"), 100.0)

    assert set(io.kills) == {"the guest saved its state too often"}


def test_what_a_stream_has_added_is_kept(io: FakeRunnerIO) -> None:
    """Each event that its caller did not have, and each state; not what is repeated."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=9, resume=RESUMED), 1.0), 1.0)
    kept = []
    for seq in (5, 6, 7):
        runner.on_chunk(ChunkOut(call_id="a", seq=seq, data=b"x"), 1.1)
        kept.append(len(io.kept))
    runner.on_checkpoint(CheckpointOut(call_id="a", seq=7, state=b"7"), 1.2)

    assert [*kept, len(io.kept)] == [0, 0, 1, 2]


def test_what_streams_have_added_in_one_frame_is_kept_together(io: FakeRunnerIO) -> None:
    """Also what came before the part that breaks a rule."""
    runner = runner_of(io, mode=Mode.GENERATOR, max_inputs=3)
    for call in "abc":
        runner.add(accepted(run(call, window=9, resume=RESUMED), 1.0), 1.0)
    first = tuple(ChunkRun(call_id=call, seq=RESUMED.after + 1, data=(b"x", b"x", b"x")) for call in "ab")
    runner.on_chunks(ChunksOut(runs=(*first, ChunkRun(call_id="c", seq=1, data=(b"x",)))), 1.1)

    assert io.kept == ["a", "b"]
    assert io.kills == ["the guest streamed out of order or beyond its window"]


def test_what_was_done_before_a_node_fell_silent_is_repeated_too(io: FakeRunnerIO) -> None:
    """For as long as it may have taken, or until the stream ends: nobody knows how many events there were."""
    resume = msgspec.structs.replace(RESUMED, fell_silent=True)
    for end in ("result", "time"):
        runner = runner_of(io, mode=Mode.GENERATOR)
        runner.add(accepted(run(end, window=9, resume=resume), 1.0), 1.0)
        for seq in (5, 6):
            runner.on_chunk(ChunkOut(call_id=end, seq=seq, data=b"x"), 1.1)
        assert end not in io.repeated
        assert runner.next_limit_at(1.15) == 1.15
        runner.on_chunk(ChunkOut(call_id=end, seq=7, data=b"x"), 1.2)
        assert end not in io.repeated, "an event that nobody has heard may have been produced there too"
        if end == "result":
            runner.on_result(Result(call_id=end, last_seq=7), 1.2)
        else:
            runner.check_limits(2.9)
            assert end not in io.repeated
            runner.check_limits(3.0)
        assert io.repeated.count(end) == 1
        runner.check_limits(4.0)
        assert io.repeated.count(end) == 1
        assert runner.next_limit_at(4.0) > 4.0


def test_of_a_stream_that_cannot_go_on_elsewhere_few_states_are_passed_on(io: FakeRunnerIO) -> None:
    """One that fits makes it resumable again, so some are; none is a fault of the guest's."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    call = accepted(run("a", resume=ResumePoint()), 1.0)
    runner.add(call, 1.0)
    movable = [call.can_move]
    runner.on_window("a", 0, 1.0, movable=False)
    for number in range(30):
        runner.on_checkpoint(CheckpointOut(call_id="a", seq=0, state=b"x"), 1.0 + number / 10)
    passed_on = [len(io.of(StreamCheckpoint))]
    movable.append(call.can_move)
    runner.on_window("a", 0, 4.0)
    movable.append(call.can_move)
    runner.on_window("a", 0, 4.0, movable=True)
    for _ in range(5):
        runner.on_checkpoint(CheckpointOut(call_id="a", seq=0, state=b"x"), 4.0)
    passed_on.append(len(io.of(StreamCheckpoint)))
    movable.append(call.can_move)

    assert (movable, passed_on, io.kills) == ([True, False, False, True], [3, 8], [])


def test_chunks_that_come_together_are_passed_on_as_if_one_by_one(io: FakeRunnerIO) -> None:
    """Of several streams; what breaks a rule ends it, and what came before is passed on."""
    runner = runner_of(io, mode=Mode.GENERATOR, max_inputs=2)
    for name in "ab":
        runner.add(accepted(run(name, window=3), 1.0), 1.0)
    runs = (ChunkRun("a", 1, (b"1", b"2")), ChunkRun("b", 1, (b"x",)), ChunkRun("a", 3, (b"3",)))
    runner.on_chunks(ChunksOut(runs=runs), 1.1)
    assert [(chunk.call_id, chunk.seq, chunk.data) for chunk in io.of(Chunk)] == [
        ("a", 1, b"1"), ("a", 2, b"2"), ("b", 1, b"x"), ("a", 3, b"3"),
    ]  # fmt: skip
    runner.on_chunks(ChunksOut(runs=(ChunkRun("b", 2, (b"y",)), ChunkRun("a", 4, (b"4",)), ChunkRun("b", 3, ()))), 1.2)
    assert io.of(Chunk)[-1].data == b"y"
    assert io.kills == ["the guest streamed out of order or beyond its window"]


@pytest.mark.parametrize("data", [(), (b"x",) * (RUN_CHUNKS + 1), (b"x", bytes(LEFT_BYTES + 1))])
def test_a_guest_that_sends_chunks_together_that_go_apart_is_killed(io: FakeRunnerIO, data: tuple[bytes, ...]) -> None:
    """A message to a gateway has room for so many; and without any it could have its work kept."""
    runner = runner_of(io, mode=Mode.GENERATOR)
    runner.add(accepted(run("a", window=WINDOW), 1.0), 1.0)
    runner.on_chunks(ChunksOut(runs=(ChunkRun("a", 1, data),)), 1.1)

    assert len(io.kills) == 1
    assert io.of(Chunk) == []
