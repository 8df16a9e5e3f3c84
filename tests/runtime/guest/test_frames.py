"""Frames as bytes."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_runtime.guest.frames import (
    HEADER,
    MAX_FRAME,
    BatchResult,
    CancelCall,
    ChunkOut,
    FrameTooLarge,
    FromAgent,
    FromGuest,
    GuestFrame,
    GuestItemResult,
    Invoke,
    InvokeBatch,
    Leave,
    Loaded,
    LoadStep,
    Result,
    WindowUpdate,
    decoder_of,
    encode,
    header,
)

FRAMES: list[tuple[GuestFrame, list[object]]] = [
    (Invoke(call_id="a", method="m", input=b"\x80", window=4), ["Invoke", "a", "m", b"\x80", 4]),
    (InvokeBatch(batch=1, method="m", items=(("a", b"\x80"),)), ["InvokeBatch", 1, "m", [["a", b"\x80"]]]),
    (CancelCall(call_id="a"), ["CancelCall", "a"]),
    (WindowUpdate(call_id="a", upto=3), ["WindowUpdate", "a", 3]),
    (Leave(), ["Leave"]),
    (Loaded(), ["Loaded"]),
    (LoadStep(name="import", ms=1.5), ["Step", "import", 1.5]),
    (ChunkOut(call_id="a", seq=1, data=b"x"), ["ChunkOut", "a", 1, b"x"]),
    (Result(call_id="a", output=b"x"), ["Result", "a", "ok", b"x", None, 0, True, 0]),
    (
        BatchResult(batch=1, results=(GuestItemResult(call_id="a", outcome=Outcome.CANCELLED),)),
        ["BatchResult", 1, [["a", "cancelled", b"", None]], 0, False, True],
    ),
]


@pytest.mark.parametrize(("frame", "fields"), FRAMES, ids=lambda one: type(one).__name__)
def test_a_frame_is_its_length_and_a_tagged_array(frame: GuestFrame, fields: list[object]) -> None:
    """Positional: both ends come from one installation."""
    data = encode(frame)

    assert HEADER.unpack(data[: HEADER.size]) == (len(data) - HEADER.size,)
    assert data[HEADER.size :] == msgspec.msgpack.encode(fields)


@pytest.mark.parametrize("frame", [frame for frame, _ in FRAMES], ids=lambda one: type(one).__name__)
def test_each_side_reads_the_frames_of_the_other_and_no_more(frame: GuestFrame) -> None:
    """A guest that sends what only an agent may is refused."""
    payload = encode(frame)[HEADER.size :]
    from_agent = isinstance(frame, Invoke | InvokeBatch | CancelCall | WindowUpdate | Leave)

    assert decoder_of(FromAgent if from_agent else FromGuest).decode(payload) == frame
    with pytest.raises(msgspec.DecodeError):
        decoder_of(FromGuest if from_agent else FromAgent).decode(payload)


def test_a_frame_beyond_the_bound_is_not_sent() -> None:
    """The other side would end the connection for it."""
    assert header(MAX_FRAME) == HEADER.pack(MAX_FRAME)
    with pytest.raises(FrameTooLarge):
        header(MAX_FRAME + 1)
