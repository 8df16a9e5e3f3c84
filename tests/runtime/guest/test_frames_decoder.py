"""Cutting a byte stream into frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_runtime.guest.frames import (
    KEPT_MEMORY,
    MAX_FRAME,
    FrameDecoder,
    FrameTooLarge,
    FromAgent,
    FromGuest,
    GuestFrame,
    Invoke,
    Leave,
    MalformedFrame,
    NestedCall,
    NestedLeave,
    WindowUpdate,
    encode,
    header,
)
from tests.example_counts import examples


def feed(inbox: FrameDecoder, data: bytes, step: int) -> list[object]:
    """Give the inbox `data`, at most `step` bytes at a time."""
    frames: list[object] = []
    while data:
        space = inbox.space()
        count = min(step, len(space), len(data))
        space[:count] = data[:count]
        frames += inbox.filled(count)
        data = data[count:]
    return frames


@examples(60)
@given(st.lists(st.integers(0, 3 * KEPT_MEMORY), max_size=8), st.integers(1, 2 * KEPT_MEMORY))
def test_frames_come_out_as_they_went_in(sizes: list[int], step: int) -> None:
    """However the bytes are cut, and however large the frames are."""
    sent = [Invoke(call_id=f"c{n}", input=bytes([n]) * size) for n, size in enumerate(sizes)]
    step = max(step, sum(sizes) // 200 + 1)

    assert feed(FrameDecoder(FromAgent), b"".join(map(encode, sent)), step) == sent


def test_many_small_frames_in_small_steps() -> None:
    """Bytes that cross the end of the memory are moved, not lost."""
    sent = [WindowUpdate(call_id="c", upto=n) for n in range(6_000)]

    assert feed(FrameDecoder(FromAgent), b"".join(map(encode, sent)), 777) == sent


def test_memory_is_given_back() -> None:
    """After a large frame an inbox is as small as before."""
    inbox = FrameDecoder(FromAgent)
    feed(inbox, encode(Invoke(call_id="c", input=bytes(5 * 2**20))), 2**20)

    assert len(inbox.space()) == KEPT_MEMORY


def test_a_lying_header_costs_no_memory() -> None:
    """A frame that is announced and not sent gets memory only as it arrives."""
    inbox = FrameDecoder(FromAgent)
    feed(inbox, header(MAX_FRAME), 4)

    assert len(inbox.space()) <= 17 * KEPT_MEMORY


@pytest.mark.parametrize(
    "data", [b"\xff\xff\xff\xff", header(3) + b"abc", header(0), header(2) + b"\x91\xa0", encode(Leave())[:-1] + b"!"]
)
def test_nonsense_is_refused(data: bytes) -> None:
    """A length beyond the limit, what is no msgpack, no frame, or a frame that there is not."""
    with pytest.raises(MalformedFrame):
        feed(FrameDecoder(FromAgent), data, 100)


@pytest.mark.parametrize(
    "frame",
    [
        NestedCall(call_id="a", number=-1, function="shop.f"),
        NestedCall(call_id="a", number=2**60, function="shop.f"),
        NestedCall(call_id="a", number=1, function="f" * 2_000),
        NestedLeave(number=-1),
    ],
)
def test_what_goes_on_to_a_gateway_is_within_its_bounds(frame: GuestFrame) -> None:
    """A gateway could not read it, and would be asked again and again."""
    with pytest.raises(MalformedFrame):
        feed(FrameDecoder(FromGuest), encode(frame), 4_096)


def test_a_frame_beyond_the_limit_is_not_sent() -> None:
    """The sender notices first."""
    with pytest.raises(FrameTooLarge):
        encode(Invoke(call_id="c", input=bytes(MAX_FRAME)))
