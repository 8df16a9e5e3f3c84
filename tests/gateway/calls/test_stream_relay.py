"""Streams: in order, once, and no faster than their caller reads."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import (
    LEAST_AHEAD,
    Chunk,
    ChunkRow,
    Ended,
    Outcome,
    Window,
)
from pilotlight_gateway.calls.effects import Effect, RelayChunks, SendControl
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.calls.stream_relay import ASK_AGAIN_S, GAP_S, SMALL_CHUNK, UNREAD_BYTES, UNREAD_CHUNKS
from tests.builders.calls import grant
from tests.gateway.calls.origin_steps import (
    RAISED,
    ended,
    kinds,
    lose,
    running,
    sent,
)


def chunk(seq: int, number: int = 1) -> Chunk:
    return Chunk(call_id="a", grant_number=number, seq=seq, data=b"x")


def flood(origin: Origin, chunks: int, size: int) -> list[Effect]:
    """What comes of the next `chunks` chunks, but that they are relayed."""
    first = (origin._relay.last_seq if origin._relay is not None else 0) + 1
    actions = [
        action
        for seq in range(first, first + chunks)
        for action in origin.frame("n1", Chunk(call_id="a", grant_number=1, seq=seq, data=b"x" * size), 2.0)
    ]
    return [action for action in actions if not isinstance(action, RelayChunks)]


def test_chunks_are_relayed_in_order_and_once() -> None:
    """The first chunk also says that it has started."""
    origin = sent()
    assert origin.frame("n1", chunk(1), 2.0) == [RelayChunks(1, (b"x",))]
    assert origin.state is OriginState.RUNNING
    assert origin.frame("n1", chunk(1), 2.0) == []
    assert origin.frame("n1", chunk(2), 2.0) == [RelayChunks(2, (b"x",))]
    assert kinds(origin.frame("n1", ended(last_seq=2), 3.0)) == ["Settle", "CallResult"]


def row(seq: int, *data: bytes, number: int = 1) -> ChunkRow:
    return ChunkRow("a", number, seq, data)


def test_chunks_that_come_together_are_relayed_together_and_once() -> None:
    """What is in two groups, as after a link has ended, is relayed by the first."""
    origin = sent()
    assert origin.chunks(row(1, b"1", b"2", b"3"), 2.0) == [RelayChunks(1, (b"1", b"2", b"3"))]
    assert origin.state is OriginState.RUNNING
    assert origin.chunks(row(2, b"2", b"3"), 2.0) == []
    assert origin.chunks(row(2, b"2", b"3", b"4"), 2.0) == [RelayChunks(4, (b"4",))]
    assert origin.chunks(row(5, b"5", number=2), 2.0) == []
    assert origin.chunks(row(5), 2.0) == []
    assert kinds(origin.frame("n1", ended(last_seq=4), 3.0)) == ["Settle", "CallResult"]


def test_a_row_without_chunks_is_nothing_that_a_caller_takes() -> None:
    """Whoever counts the chunks that came at once divides by their number."""
    origin = sent()
    origin.chunks(row(1, b"1"), 2.0)
    assert origin.awaits(1, 2, (b"2",))
    assert not origin.awaits(1, 2, ())


AGAIN = SendControl("n1", Window(call_id="a", upto=1, again=True))


def test_chunks_that_were_lost_are_asked_for_and_come_again() -> None:
    """All behind the last one that was heard; each reaches the caller once, in order. It asks once a second."""
    origin = sent()
    origin.chunks(row(1, b"1"), 2.0)
    assert origin.chunks(row(3, b"3", b"4"), 2.0) == [AGAIN]
    assert origin.wake_at == 2.0 + GAP_S
    assert not origin.awaits(1, 2, (b"2",))  # who waits has to be told that the gap is closed
    assert origin.chunks(row(5, b"5"), 2.0 + ASK_AGAIN_S / 2) == []
    assert origin.chunks(row(6, b"6"), 2.0 + ASK_AGAIN_S) == [AGAIN]
    assert origin.chunks(row(2, b"2", b"3"), 3.5) == [RelayChunks(2, (b"2", b"3"))]
    assert origin.awaits(1, 4, (b"4",))
    assert origin.tick(2.0 + GAP_S) == []
    assert origin.chunks(row(3, b"3", b"4", b"5", b"6"), 3.6) == [RelayChunks(4, (b"4", b"5", b"6"))]
    assert kinds(origin.frame("n1", ended(last_seq=6), 4.0)) == ["Settle", "CallResult"]


def test_an_end_that_comes_before_chunks_waits_for_them() -> None:
    """Also where none came at all; the agent sends it again behind them, and it is settled once."""
    origin = sent()
    origin.frame("n1", chunk(1), 2.0)
    assert origin.frame("n1", ended(last_seq=2), 2.0) == [AGAIN]
    assert kinds(origin.frame("n1", chunk(2), 2.1)) == ["RelayChunks"]
    assert kinds(origin.frame("n1", ended(last_seq=2), 2.2)) == ["Settle", "CallResult"]
    origin = sent()
    (asked,) = origin.frame("n1", ended(last_seq=2), 2.0)
    assert asked == SendControl("n1", Window(call_id="a", upto=0, again=True))
    assert origin.state is OriginState.RUNNING


def test_a_group_moves_the_window_once() -> None:
    """By all that it has."""
    origin = running()
    effects = origin.chunks(row(1, *[b"x"] * LEAST_AHEAD), 2.0)
    assert [effect.message for effect in effects if isinstance(effect, SendControl)] == [
        Window(call_id="a", upto=LEAST_AHEAD)
    ]


@pytest.mark.parametrize("frame", [chunk(3), ended(last_seq=2)])
def test_a_gap_that_stays_ends_a_stream(frame: Chunk | Ended) -> None:
    """The caller is told rather than given a stream with a hole: its agent is of before, or has kept too little."""
    origin = sent()
    origin.frame("n1", chunk(1), 2.0)
    assert origin.frame("n1", frame, 2.0) == [AGAIN]
    assert origin.tick(1.9 + GAP_S) == []
    (stopped, failed) = origin.tick(2.0 + GAP_S)
    assert kinds([stopped, failed]) == ["SendControl", "FailCall"]
    assert origin.frame("n1", chunk(2), 12.1) == []


def test_a_gap_of_a_container_that_died_is_not_that_of_the_next() -> None:
    """Of a call that its caller has nothing of: it runs again from its beginning."""
    origin = sent(idempotent=True)
    origin.frame("n1", chunk(2), 2.0)
    assert origin.wake_at == 2.0 + GAP_S
    origin.frame("n1", ended(Outcome.DIED), 3.0)
    origin.granted(grant(2), 4.0)
    assert origin.tick(2.0 + GAP_S) == []
    assert origin.frame("n1", chunk(1, 2), 13.0) != []


@pytest.mark.parametrize("outcome", [Outcome.RAISED, Outcome.DIED])
def test_a_stream_is_never_run_again_once_a_chunk_was_relayed(outcome: Outcome) -> None:
    """Its caller has seen a part of the first answer."""
    origin = sent(idempotent=True, retries=3)
    origin.frame("n1", chunk(1), 2.0)
    assert kinds(origin.frame("n1", ended(outcome, error=RAISED, last_seq=1), 3.0)) == ["Settle", "FailCall"]


def test_a_stream_that_was_lost_before_its_first_chunk_may_run_again() -> None:
    """Nobody has seen anything of it; the second run counts its chunks from 1."""
    origin = running(idempotent=True)
    assert "Enqueue" in kinds(lose(origin, 3.0, "node"))
    origin.granted(grant(2), 4.0)
    assert origin.frame("n1", chunk(1, 2), 4.1) == [RelayChunks(1, (b"x",))]


def test_small_chunks_flow_before_they_are_read() -> None:
    """The container is told to go on in steps, until too many chunks are unread."""
    origin = running()
    assert flood(origin, LEAST_AHEAD - 1, 1) == []
    assert flood(origin, 1, 1) == [SendControl("n1", Window(call_id="a", upto=LEAST_AHEAD))]
    assert len(flood(origin, UNREAD_CHUNKS - LEAST_AHEAD, 1)) == UNREAD_CHUNKS // LEAST_AHEAD - 1
    assert flood(origin, LEAST_AHEAD, 1) == []
    assert origin.was_read(1, 1) == []
    told = [action for _ in range(LEAST_AHEAD) for action in origin.was_read(1, 1)]
    assert told == [SendControl("n1", Window(call_id="a", upto=UNREAD_CHUNKS + LEAST_AHEAD))]


def test_streams_of_large_chunks_are_told_to_go_on_twice_as_often() -> None:
    """They go no further ahead than LEAST_AHEAD, and would wait."""
    origin = running()
    assert flood(origin, LEAST_AHEAD // 2 - 1, SMALL_CHUNK) == []
    assert flood(origin, 1, SMALL_CHUNK) == [SendControl("n1", Window(call_id="a", upto=LEAST_AHEAD // 2))]


def test_large_chunks_wait_for_their_reader() -> None:
    """Whatever the container sends, only so many bytes are unread: it is told to go on when they are fewer."""
    origin = running()
    size = UNREAD_BYTES // 2
    assert flood(origin, LEAST_AHEAD, size) == []
    reading = [origin.was_read(1, size) for _ in range(LEAST_AHEAD - 2)]
    assert reading == [[]] * (LEAST_AHEAD - 3) + [[SendControl("n1", Window(call_id="a", upto=LEAST_AHEAD))]]


def test_a_stream_that_is_over_is_not_told_to_go_on() -> None:
    """Its caller may still read what it has."""
    origin = running()
    flood(origin, LEAST_AHEAD, UNREAD_BYTES)
    origin.cancel()
    assert [origin.was_read(1, UNREAD_BYTES) for _ in range(LEAST_AHEAD)] == [[]] * LEAST_AHEAD


def test_chunks_that_are_read_as_they_come_are_not_relayed() -> None:
    """Those that its caller waits for next, of the grant in use, once it runs; they move the window."""
    origin = running()
    assert not origin.awaits(1, 1, (b"x",))
    origin.chunks(row(1, b"1"), 2.0)
    assert origin.awaits(1, 2, (b"x",))
    assert not origin.awaits(1, 1, (b"x",))
    assert not origin.awaits(1, 3, (b"x",))
    assert not origin.awaits(2, 2, (b"x",))
    assert origin.took_chunks(2, (b"2", b"3"), 2.0) == []
    assert origin.chunks(row(4, b"4"), 2.0) == [RelayChunks(4, (b"4",))]
    assert origin.took_chunks(5, (b"x",) * LEAST_AHEAD, 2.0) == [
        SendControl("n1", Window(call_id="a", upto=LEAST_AHEAD + 4))
    ]
    assert kinds(origin.frame("n1", ended(last_seq=LEAST_AHEAD + 4), 3.0)) == ["Settle", "CallResult"]
    assert not origin.awaits(1, LEAST_AHEAD + 5, (b"x",))
