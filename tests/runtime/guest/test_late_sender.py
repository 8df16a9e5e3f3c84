"""Frames that are left to be sent soon, by a thread that may do something else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import CHUNK_GROUP, LEFT_BYTES, ChunkOut, FrameDecoder, FromGuest, Loaded
from pilotlight_runtime.guest.late_sender import LateSender

Ends = tuple[Channel, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A guest's channel, and the agent's end of it."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(30)
    with ours, theirs:
        yield Channel(ours), theirs


def chunk(seq: int, size: int = 1) -> ChunkOut:
    return ChunkOut(call_id="a", seq=seq, data=bytes(size))


def received(sock: socket.socket, count: int) -> list[object]:
    decoder, frames = FrameDecoder(FromGuest), list[object]()
    while len(frames) < count:
        frames += decoder.filled(sock.recv_into(decoder.space()))
    return frames


def test_what_is_left_is_sent_although_nothing_follows(ends: Ends) -> None:
    """Its thread does it while the other one waits; and again, as often as something is left."""
    channel, agent = ends
    late = LateSender(channel)
    for seq in range(1, 4):
        late.send(chunk(seq))
        assert received(agent, 1) == [chunk(seq)]


def test_nothing_changes_its_order(ends: Ends) -> None:
    """Small and large chunks, full groups, and what is sent at once."""
    channel, agent = ends
    late = LateSender(channel)
    sent: list[object] = []
    for seq in range(1, 200):
        frame = chunk(seq, LEFT_BYTES if seq % 50 == 0 else seq % 7)
        late.send(frame)
        sent.append(frame)
    channel.send(Loaded())

    assert received(agent, 200) == [*sent, Loaded()]


def test_without_a_thread_it_sends_at_once(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox may allow no more of them."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    channel, agent = ends
    LateSender(channel).send(chunk(1))

    assert received(agent, 1) == [chunk(1)]


def test_threads_that_leave_frames_lose_and_reorder_none(ends: Ends) -> None:
    """Each thread's come once and in its order."""
    channel, agent = ends
    late, threads, each = LateSender(channel), 6, 50 * CHUNK_GROUP + 3

    def send_all(name: str) -> None:
        for seq in range(each):
            late.send(ChunkOut(call_id=name, seq=seq, data=b"x"))

    workers = [threading.Thread(target=send_all, args=(str(number),)) for number in range(threads)]
    for worker in workers:
        worker.start()
    frames = [frame for frame in received(agent, threads * each) if isinstance(frame, ChunkOut)]
    for worker in workers:
        worker.join(30)

    assert len(frames) == threads * each
    for number in range(threads):
        assert [frame.seq for frame in frames if frame.call_id == str(number)] == list(range(each))
