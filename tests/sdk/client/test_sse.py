"""Server-sent events, however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.client.sse import Event, EventReader
from pilotlight.errors import BadOutput

TEXT = "\ufeff: hello\r\n\r\nevent: stage\rdata: {}\r\revent:chunk\ndata:a\ndata: b\n\n: keepalive\n\ndata: ünï\r\nid: 3\r\n\r\nnothing\n\ndata: unfinished\n"  # noqa: E501
EVENTS = [Event("stage", b"{}"), Event("chunk", b"a\nb"), Event("message", "ünï".encode())]


@given(st.lists(st.integers(0, len(TEXT.encode()))))
def test_events_do_not_depend_on_how_bytes_arrive(cuts: list[int]) -> None:
    """All three line ends, comments, a mark at the start, several data lines; the rest is not dispatched."""
    data = TEXT.encode()
    edges = [0, *sorted(cuts), len(data)]
    reader = EventReader()
    found = [event for a, b in pairwise(edges) for event in reader.feed(data[a:b])]

    assert found == EVENTS


def test_an_event_has_a_bound() -> None:
    """In one line or in many."""
    with pytest.raises(BadOutput, match="more than 100 bytes"):
        list(EventReader(100).feed(b"data: " + b"x" * 200))
    with pytest.raises(BadOutput):
        list(EventReader(100).feed(b"data: xxx\n" * 50))
    assert list(EventReader(100).feed(b"data: x\n\n" * 1000)) == [Event("message", b"x")] * 1000
