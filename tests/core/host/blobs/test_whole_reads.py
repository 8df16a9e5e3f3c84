"""Blobs read whole, in threads."""

from __future__ import annotations

import asyncio
import io
import threading

from pilotlight_core.host.blobs.whole_reads import BUFFER, READERS, BlobReaders, read_pieces


def test_a_content_comes_in_pieces_of_one_memory() -> None:
    """Each is gone with the next; all of them are the content."""
    content = bytes(range(256)) * (BUFFER // 128)
    seen = []
    read_pieces(io.BytesIO(content), lambda piece: seen.append(bytes(piece)))
    assert b"".join(seen) == content
    assert max(map(len, seen)) == BUFFER


async def test_many_are_read_at_once() -> None:
    """As many as there are threads, which are the store's own."""
    readers, all_there = BlobReaders(), threading.Barrier(READERS)
    try:
        names = await asyncio.gather(
            *(readers.run(lambda: (all_there.wait(30), threading.current_thread().name)[1]) for _ in range(READERS))
        )
    finally:
        readers.close()
    assert len(set(names)) == READERS
    BlobReaders().close()  # of one that never read
