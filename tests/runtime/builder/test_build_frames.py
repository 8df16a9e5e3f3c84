"""What a builder and an agent tell each other, and what the agent does not believe."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import msgspec
import pytest

from pilotlight_runtime.builder.build_frames import (
    MAX_BUILD_FRAME,
    BadBuild,
    BuildEnd,
    BuildFrame,
    BuildJob,
    BuiltPiece,
    next_answer,
    next_job,
    send_frame,
)

JOB = BuildJob(uv="/uv", python="/python", index="http://index/", network="/run/network", requirements=("a",))


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_frames_arrive_as_they_were_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    """In both directions."""
    agent, builder = ends
    send_frame(agent, JOB)
    assert next_job(builder) == JOB
    answers: list[BuildFrame] = [BuiltPiece(path="a", data=b"x", is_last=True), BuildEnd(lock="a==1", bases=("b",))]
    for answer in answers:
        send_frame(builder, answer)
    assert [next_answer(agent), next_answer(agent)] == answers


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (struct.pack("<I", MAX_BUILD_FRAME + 1), "too large"),
        (struct.pack("<I", 3) + b"abc", "cannot be read"),
        (struct.pack("<I", 9) + b"ab", "gone"),
        (b"", "gone"),
        (struct.pack("<I", len(msgspec.msgpack.encode(JOB))) + msgspec.msgpack.encode(JOB), "cannot be read"),
    ],
)
def test_what_is_no_answer_is_refused(ends: tuple[socket.socket, socket.socket], data: bytes, why: str) -> None:
    """Before any memory is given for it."""
    agent, builder = ends
    builder.sendall(data)
    builder.close()

    with pytest.raises(BadBuild, match=why):
        next_answer(agent)
