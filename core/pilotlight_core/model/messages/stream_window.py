"""How far a stream may be ahead of its reader: many small chunks, or a few large ones.

The origin says how far it has passed the stream on (`Window`), at the latest for each half of LEAST_AHEAD chunks. Who
sends chunks counts those beyond, and so does each one on the way that trusts no sender.
"""

from __future__ import annotations

WINDOW = 128
"""The most chunks that a stream may be ahead. With 32 it waits for its reader's word, and has half the pace."""
LEAST_AHEAD = 32
"""Chunks of any size. Of the largest (768 KiB) 24 MiB are under way."""
BYTES_AHEAD = 64 * 1024
"""Beyond LEAST_AHEAD: if all chunks were as large as the largest so far."""


def chunks_ahead(window: int, largest: int) -> int:
    """How many chunks a stream with the given `window` may be ahead, whose largest so far has `largest` bytes."""
    if largest * window <= BYTES_AHEAD:
        return window
    return min(window, max(LEAST_AHEAD, BYTES_AHEAD // largest))
