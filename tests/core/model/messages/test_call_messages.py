"""Small chunks go far ahead of their reader, large ones as far as memory allows."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.call_messages import (
    BYTES_AHEAD,
    GROUP_AT_MOST,
    LEAST_AHEAD,
    WINDOW,
    ChunkGroup,
    ChunkRow,
    chunks_ahead,
)
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_runtime.calls.chunk_groups import GROUP_CHUNKS
from tests.example_counts import examples


@examples(200)
@given(st.integers(1, 2 * WINDOW), st.integers(0, 10**6))
def test_chunks_ahead_are_bounded_in_number_and_in_bytes(window: int, largest: int) -> None:
    """Never more than the window; beyond LEAST_AHEAD never more than BYTES_AHEAD; and never none."""
    ahead = chunks_ahead(window, largest)

    assert 1 <= ahead <= window
    assert ahead >= min(window, LEAST_AHEAD)
    assert ahead <= LEAST_AHEAD or ahead * largest <= BYTES_AHEAD


def test_a_larger_chunk_never_lets_a_stream_go_further() -> None:
    """Whoever has seen fewer chunks than the sender allows at least as much."""
    assert [chunks_ahead(WINDOW, size) for size in (0, 512, 1_024, 4_096, 10**6)] == [128, 128, 64, 32, 32]


def test_a_group_of_chunks_is_bounded() -> None:
    """What an agent sends fits; a hostile one is not read."""
    assert GROUP_CHUNKS <= GROUP_AT_MOST
    for rows, chunks, fits in ((1, GROUP_AT_MOST, True), (GROUP_AT_MOST + 1, 1, False), (1, GROUP_AT_MOST + 1, False)):
        group = ChunkGroup(rows=(ChunkRow("a", 1, 1, (b"",) * chunks),) * rows)
        if fits:
            assert decode(encode(group)) == group
        else:
            with pytest.raises(msgspec.ValidationError):
                decode(encode(group))
