"""Server-sent events, however the bytes are cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.client.transport.event_stream import read_events
from pilotlight.definitions.errors import BadOutput

TEXT = "\ufeff: hello\r\n\r\nevent: stage\rdata: {}\r\revent:chunk\ndata:a\ndata: b\n\n: keepalive\n\ndata: ünï\r\nid: 3\r\n\r\nnothing\n\ndata: unfinished\n"  # noqa: E501
EVENTS = [("stage", "{}"), ("chunk", "a\nb"), ("message", "ünï")]
LINE_ENDS = ["\n", "\r", "\r\n"]
EVENT_ENDS = [line + empty for line in LINE_ENDS for empty in LINE_ENDS if line + empty != "\r\n"]


def events_in(chunks: Iterable[bytes], **limit: int) -> list[tuple[str, str]]:
    """The events that are read when the body arrives as these chunks."""

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def read() -> list[tuple[str, str]]:
        return [(event.event, event.data) async for event in read_events(body(), **limit)]

    with pytest.raises(StopIteration) as done:  # nothing here waits, so no event loop is needed
        read().send(None)
    found: list[tuple[str, str]] = done.value.value
    return found


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The pieces between these places."""
    return [data[start:end] for start, end in pairwise([0, *sorted(places), len(data)])]


@given(st.lists(st.integers(0, len(TEXT.encode()))))
def test_events_do_not_depend_on_how_bytes_arrive(cuts: list[int]) -> None:
    """Line ends, comments, a byte order mark and several data lines are parsed in any chunks."""
    assert events_in(cut(TEXT.encode(), cuts)) == EVENTS


def test_an_event_has_a_bound() -> None:
    """The bound holds for one line or many, with any line ends."""
    with pytest.raises(BadOutput, match="more than 100 bytes"):
        events_in([b"data: " + b"x" * 200], limit=100)
    for end in LINE_ENDS:
        with pytest.raises(BadOutput):
            events_in([f"data: xxx{end}".encode()] * 50, limit=100)


@given(st.lists(st.sampled_from(EVENT_ENDS), min_size=30, max_size=60), st.integers(1, 40))
def test_small_events_may_be_many(ends: list[str], size: int) -> None:
    """The bound is that of each event, not of their sum, wherever chunks end."""
    data = "".join(f"data: x{end}" for end in ends).encode()
    assert events_in(cut(data, range(size, len(data), size)), limit=100) == [("message", "x")] * len(ends)
