"""Messages to a worker, and its replies."""

from __future__ import annotations

import io

from pilotlight_gateway.bodies.worker_frames import LENGTH, OutputWork, WorkReply, head_of, read_work, reply_decoder


def test_a_work_and_its_payload_come_as_they_were_sent() -> None:
    """One behind the other; half a length is the end."""
    works = [OutputWork(size=size, version="ver_1", method=None, as_json=True) for size in (3, 0)]
    sent = io.BytesIO(head_of(works[0]) + b"abc" + head_of(works[1]) + b"\x01")

    assert read_work(sent) == (works[0], b"abc")
    assert read_work(sent) == (works[1], b"")
    assert read_work(sent) is None


def test_half_a_work_is_the_end() -> None:
    """The gateway was killed while it sent it."""
    whole = head_of(OutputWork(size=3, version="ver_1", method=None, as_json=True)) + b"abc"

    assert all(read_work(io.BytesIO(whole[:end])) is None for end in range(len(whole)))


def test_a_replys_head_has_its_length_in_front() -> None:
    """Its payload follows."""
    reply = WorkReply(size=7, code="bad_input", detail="no", more={"field": "input.n"})
    head = head_of(reply)

    assert LENGTH.unpack(head[: LENGTH.size])[0] == len(head) - LENGTH.size
    assert reply_decoder.decode(head[LENGTH.size :]) == reply
