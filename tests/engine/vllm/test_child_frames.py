"""Frames between an engine and its child."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from pilotlight_engine.vllm import child_frames
from pilotlight_engine.vllm.child_frames import ChildGone, FramePipe

Ends = tuple[FramePipe, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A pipe, and its other end as bytes."""
    ours, theirs = socket.socketpair()
    pipe = FramePipe(ours)
    yield pipe, theirs
    pipe.close()
    theirs.close()


def test_frames_come_whole_however_they_are_cut(ends: Ends) -> None:
    """Several at once, and one in parts."""
    pipe, other = ends
    other.sendall(b'{"a":1}\n{"b":2}\n{"c"')
    assert pipe.receive(1) == [{"a": 1}, {"b": 2}]
    assert pipe.receive(0) == []
    other.sendall(b":3}\n")
    assert pipe.receive(1) == [{"c": 3}]


def test_a_frame_is_a_line(ends: Ends) -> None:
    """Whatever is in it."""
    pipe, other = ends
    pipe.send({"text": "two\nlines"})

    assert other.recv(100) == b'{"text":"two\\nlines"}\n'


def test_a_closed_end_is_known(ends: Ends) -> None:
    """When something is read, or written."""
    pipe, other = ends
    other.close()
    with pytest.raises(ChildGone):
        pipe.receive(1)
    with pytest.raises(ChildGone):
        pipe.send({})


def test_a_frame_without_an_end_is_no_frame(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded."""
    monkeypatch.setattr(child_frames, "MAX_LINE", 10)
    pipe, other = ends
    other.sendall(b"x" * 11)
    with pytest.raises(ChildGone, match="no end"):
        pipe.receive(1)
