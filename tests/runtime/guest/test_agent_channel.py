"""The guest's end of the socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pilotlight_runtime.guest.agent_channel import AgentGone, Channel
from pilotlight_runtime.guest.frames import (
    CHUNK_GROUP,
    GROUP,
    GROUP_BYTES,
    MAX_FRAME,
    RUN_CHUNKS,
    CancelCall,
    ChunkOut,
    ChunkRun,
    ChunksOut,
    FrameDecoder,
    FrameTooLarge,
    FromGuest,
    Leave,
    Loaded,
    MalformedFrame,
    Result,
    WindowUpdate,
    encode,
)
from tests.waiting import wait_until

Ends = tuple[Channel, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A guest's channel, and the agent's end of it."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(30)
    with ours, theirs:
        yield Channel(ours), theirs


def received(sock: socket.socket, count: int) -> list[object]:
    """So many frames, as the agent reads them."""
    decoder, frames = FrameDecoder(FromGuest), list[object]()
    while len(frames) < count:
        frames += decoder.filled(sock.recv_into(decoder.space()))
    return frames


def test_frames_arrive_whole_and_in_order(ends: Ends) -> None:
    """Small ones in one piece, large ones in two."""
    channel, agent = ends
    small, large = Loaded(), Result(call_id="a", output=b"x" * (2 * GROUP_BYTES))
    channel.send(small)
    channel.send(large)

    assert received(agent, 2) == [small, large]


def test_what_came_at_once_is_kept_for_later(ends: Ends) -> None:
    """One frame is taken, the others wait without the socket."""
    channel, agent = ends
    agent.sendall(b"".join(map(encode, (CancelCall(call_id="a"), WindowUpdate(call_id="b", upto=1), Leave()))))

    assert channel.receive_one() == CancelCall(call_id="a")
    assert channel.wait_readable(0)
    assert channel.receive_nowait() == [WindowUpdate(call_id="b", upto=1), Leave()]
    assert channel.receive_nowait() == []
    assert not channel.wait_readable(0)


def test_a_closed_agent_is_gone(ends: Ends) -> None:
    """For reading and for writing."""
    channel, agent = ends
    agent.close()

    with pytest.raises(AgentGone):
        channel.receive()
    with pytest.raises(AgentGone):
        channel.send(Loaded())


def test_a_frame_too_large_leaves_the_channel_in_order(ends: Ends) -> None:
    """Nothing of it was sent."""
    channel, agent = ends
    with pytest.raises(FrameTooLarge):
        channel.send(Result(call_id="a", output=bytes(MAX_FRAME)))
    channel.send(Loaded())

    assert received(agent, 1) == [Loaded()]


def test_what_is_no_frame_is_malformed(ends: Ends) -> None:
    """Nothing that follows could be understood."""
    channel, agent = ends
    agent.sendall(b"\x01\x00\x00\x00\xc1")

    with pytest.raises(MalformedFrame):
        channel.receive()


def test_the_child_of_a_fork_cannot_answer_in_the_guests_name(ends: Ends) -> None:
    """It inherits the socket, and loses it at once."""
    channel, agent = ends
    child = os.fork()
    if not child:
        try:
            channel.send(Loaded())
        except AgentGone:
            os._exit(7)
        os._exit(0)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 7
    channel.send(Loaded())
    assert received(agent, 1) == [Loaded()]


def test_kept_frames_go_together_and_before_what_is_sent_later(ends: Ends) -> None:
    """With a flush, with the next send, or when the group is full."""
    channel, agent = ends
    results = [Result(call_id=str(number)) for number in range(GROUP + 2)]
    channel.keep(results[0])
    agent.setblocking(False)  # noqa: FBT003 - its only argument
    with pytest.raises(BlockingIOError):
        agent.recv(1)
    agent.settimeout(30)
    channel.flush()
    assert received(agent, 1) == results[:1]

    channel.keep(results[1])
    channel.send(results[2])
    assert received(agent, 2) == results[1:3]

    for result in results[2:]:
        channel.keep(result)
    assert received(agent, GROUP) == results[2:]


def test_a_large_frame_waits_for_no_other(ends: Ends) -> None:
    """Together with what was kept before it."""
    channel, agent = ends
    small, large = Result(call_id="a"), Result(call_id="b", output=bytes(GROUP_BYTES))
    channel.keep(small)
    channel.keep(large)

    assert received(agent, 2) == [small, large]


def test_threads_that_send_at_once_lose_and_reorder_nothing(ends: Ends) -> None:
    """Each frame comes once, those of a thread in its order, small and large ones."""
    channel, agent = ends
    threads, each = 8, 400

    def send(number: int) -> None:
        for seq in range(each):
            size = 2 * GROUP_BYTES if seq % 97 == 0 else seq % 50
            channel.send(ChunkOut(call_id=str(number), seq=seq, data=bytes(size)))

    with ThreadPoolExecutor(threads) as pool:
        sending = [pool.submit(send, number) for number in range(threads)]
        frames = [frame for frame in received(agent, threads * each) if isinstance(frame, ChunkOut)]
        for sent in sending:
            sent.result(30)

    assert len(frames) == threads * each
    for number in range(threads):
        assert [frame.seq for frame in frames if frame.call_id == str(number)] == list(range(each))


def test_a_thread_leaves_its_frame_to_the_one_that_sends(ends: Ends) -> None:
    """It need not wait for the agent, until a group is full."""
    channel, agent = ends
    large = Result(call_id="large", output=bytes(8 * 2**20))
    small = [Result(call_id=str(number)) for number in range(GROUP)]
    with ThreadPoolExecutor(2) as pool:
        blocked = pool.submit(channel.send, large)
        wait_until(channel._lock.locked, "the agent does not read")
        for frame in small[:-1]:
            channel.send(frame)
        last = pool.submit(channel.send, small[-1])
        assert not blocked.done()
        assert received(agent, 1 + GROUP) == [large, *small]
        blocked.result(30)
        last.result(30)


def test_a_flush_waits_for_what_another_thread_sends(ends: Ends) -> None:
    """Also when that thread has taken the last frame already: who flushes may be about to end the process."""
    channel, agent = ends
    large = Result(call_id="large", output=bytes(8 * 2**20))
    with ThreadPoolExecutor(2) as pool:
        sending = pool.submit(channel.send, large)
        wait_until(channel._lock.locked, "the agent does not read")
        flushing = pool.submit(channel.flush)
        assert not channel._group
        assert not flushing.done()
        assert received(agent, 1) == [large]
        sending.result(30)
        flushing.result(30)


def test_what_is_kept_goes_before_the_end_without_waiting(ends: Ends) -> None:
    """It goes once; and where the agent does not read, the end comes all the same."""
    channel, agent = ends
    channel.keep(Result(call_id="a"))
    channel.flush_at_exit()
    channel.flush_at_exit()
    channel.send(Loaded())
    assert received(agent, 2) == [Result(call_id="a"), Loaded()]

    channel.keep(Result(call_id="b"))
    agent.close()
    channel.flush_at_exit()
    channel.flush()


def test_chunks_that_are_left_go_as_one_frame(ends: Ends) -> None:
    """Between other frames, and at most so many, to an agent that takes them so; a large one goes by itself."""
    channel, agent = ends
    channel.joins_chunks = True
    chunks = [ChunkOut(call_id=call, seq=seq, data=b"x") for call, seq in (("a", 1), ("a", 2), ("b", 1), ("a", 3))]
    for chunk in chunks:
        assert channel.leave(chunk)
    assert channel.leave(Result(call_id="b"))
    assert channel.leave(ChunkOut(call_id="a", seq=5, data=b"y"))
    channel.send(Result(call_id="c"))
    runs = (ChunkRun("a", 1, (b"x", b"x")), ChunkRun("b", 1, (b"x",)), ChunkRun("a", 3, (b"x",)))
    assert received(agent, 4) == [
        ChunksOut(runs=runs),
        Result(call_id="b"),
        ChunksOut(runs=(ChunkRun("a", 5, (b"y",)),)),
        Result(call_id="c"),
    ]

    large = ChunkOut(call_id="a", seq=6, data=bytes(GROUP_BYTES))
    assert channel.leave(chunks[0])
    assert not channel.leave(large)
    assert received(agent, 2) == [ChunksOut(runs=(ChunkRun("a", 1, (b"x",)),)), large]

    with channel._lock:
        channel._group += [ChunkOut(call_id="a", seq=seq, data=b"z") for seq in range(1, CHUNK_GROUP + 2)]
    channel.flush()
    assert received(agent, 2) == [
        ChunksOut(runs=tuple(ChunkRun("a", 1 + at, (b"z",) * RUN_CHUNKS) for at in range(0, CHUNK_GROUP, RUN_CHUNKS))),
        ChunksOut(runs=(ChunkRun("a", CHUNK_GROUP + 1, (b"z",)),)),
    ]
