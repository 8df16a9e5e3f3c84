"""Frames as bytes."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest import frames
from pilotlight_runtime.guest.frames import (
    HEADER,
    MAX_FRAME,
    BatchResult,
    CancelCall,
    CheckpointOut,
    ChunkOut,
    FrameTooLarge,
    FromAgent,
    FromGuest,
    GuestFrame,
    GuestItemResult,
    Hello,
    HooksRan,
    Invoke,
    InvokeBatch,
    Leave,
    Load,
    Loaded,
    LoadError,
    LoadStep,
    ParkGuest,
    Result,
    UnparkGuest,
    WindowUpdate,
    decoder_of,
    encode,
    header,
)

FRAMES: list[tuple[GuestFrame, list[object]]] = [
    (Invoke(call_id="a", method="m", input=b"\x80", window=4), ["Invoke", "a", "m", b"\x80", 4, None, None, ""]),
    (CheckpointOut(call_id="a", seq=1, state=b"x"), ["CheckpointOut", "a", 1, b"x"]),
    (InvokeBatch(batch=1, method="m", items=(("a", b"\x80"),)), ["InvokeBatch", 1, "m", [["a", b"\x80"]], []]),
    (CancelCall(call_id="a"), ["CancelCall", "a"]),
    (WindowUpdate(call_id="a", upto=3), ["WindowUpdate", "a", 3]),
    (Leave(), ["Leave"]),
    (Loaded(parks=True), ["Loaded", True]),
    (ParkGuest(), ["Park"]),
    (UnparkGuest(), ["Unpark"]),
    (HooksRan(), ["HooksRan", None]),
    (LoadStep(name="import", ms=1.5), ["Step", "import", 1.5]),
    (ChunkOut(call_id="a", seq=1, data=b"x"), ["ChunkOut", "a", 1, b"x"]),
    (Result(call_id="a", output=b"x"), ["Result", "a", "ok", b"x", None, 0, True, 0, None]),
    (
        BatchResult(batch=1, results=(GuestItemResult(call_id="a", outcome=Outcome.CANCELLED),)),
        ["BatchResult", 1, [["a", "cancelled", b"", None, None]], 0, False, True],
    ),
]


@pytest.mark.parametrize(("frame", "fields"), FRAMES, ids=lambda one: type(one).__name__)
def test_a_frame_is_its_length_and_a_tagged_array(frame: GuestFrame, fields: list[object]) -> None:
    """Positional: names cost bytes in every call."""
    data = encode(frame)

    assert HEADER.unpack(data[: HEADER.size]) == (len(data) - HEADER.size,)
    assert data[HEADER.size :] == msgspec.msgpack.encode(fields)


VERSION_1_0: dict[type[msgspec.Struct], str] = {
    Load: "spec root env", Invoke: "call_id method input window", InvokeBatch: "batch method items",
    CancelCall: "call_id", WindowUpdate: "call_id upto", Leave: "", Hello: "pid ms modules frames",
    LoadStep: "name ms", Loaded: "", LoadError: "step error", ChunkOut: "call_id seq data",
    Result: "call_id outcome output error execute_ns started last_seq",
    BatchResult: "batch results execute_ns whole started", GuestItemResult: "call_id outcome output error",
}  # fmt: skip
"""The fields of each frame, in their order. Never changed but with the first number of `frames.FRAMES`."""


@pytest.mark.parametrize("kind", VERSION_1_0)
def test_fields_are_only_appended(kind: type[msgspec.Struct]) -> None:
    """Guests come from other installations: what version 1.0 has is where it was, and what came later has a default."""
    known = tuple(VERSION_1_0[kind].split())
    fields = msgspec.structs.fields(kind)

    assert frames.FRAMES[0] == 1
    assert tuple(field.name for field in fields)[: len(known)] == known
    assert not [field.name for field in fields[len(known) :] if field.required]


def test_a_guest_that_says_no_version_is_of_release_0_1() -> None:
    """It sent three fields."""
    assert decoder_of(FromGuest).decode(msgspec.msgpack.encode(["Hello", 1, 2.0, []])).frames == (0, 0)


@pytest.mark.parametrize("frame", [frame for frame, _ in FRAMES], ids=lambda one: type(one).__name__)
def test_each_side_reads_the_frames_of_the_other_and_no_more(frame: GuestFrame) -> None:
    """A guest that sends what only an agent may is refused."""
    payload = encode(frame)[HEADER.size :]
    from_agent = isinstance(frame, Invoke | InvokeBatch | CancelCall | WindowUpdate | Leave | ParkGuest | UnparkGuest)

    assert decoder_of(FromAgent if from_agent else FromGuest).decode(payload) == frame
    with pytest.raises(msgspec.DecodeError):
        decoder_of(FromGuest if from_agent else FromAgent).decode(payload)


def test_a_frame_beyond_the_bound_is_not_sent() -> None:
    """The other side would end the connection for it."""
    assert header(MAX_FRAME) == HEADER.pack(MAX_FRAME)
    with pytest.raises(FrameTooLarge):
        header(MAX_FRAME + 1)
