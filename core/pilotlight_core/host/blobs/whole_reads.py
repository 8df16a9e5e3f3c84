"""Whole blobs read into memory that the reader gives, each in one thread of a store's own.

A large file is many such blobs, and reading it is as fast as many of them are read at once. Pieces that go through the
event loop one by one cost it a turn each; here a blob costs one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from pilotlight_core.host.blobs.blob_port import CHUNK, BlobsDown

READERS = 24
"""Threads of a store that read, and with it the blobs that are read at once: they wait for the far end, mostly."""
T = TypeVar("T")


class BlobSource(Protocol):
    """A blob as it is stored, in one thread."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at its end."""
        ...


Through = Callable[[BlobSource, memoryview], int]
"""Fills memory from a source, and returns how many bytes the content has."""


class TargetFull(BlobsDown):
    """A blob is larger than what it is read into."""


def copy_whole(source: BlobSource, target: memoryview) -> int:
    """The content as it is stored.

    Raises:
        TargetFull.
    """
    size = 0
    while piece := source.read(CHUNK):
        put(piece, target, size)
        size += len(piece)
    return size


def put(piece: bytes, target: memoryview, at: int) -> None:
    """Put a piece at its place.

    Raises:
        TargetFull: there is no room for it.
    """
    if at + len(piece) > len(target):
        raise TargetFull("A blob has more bytes than it should have.")
    target[at : at + len(piece)] = piece


async def fill(pieces: AsyncIterator[bytes], target: memoryview) -> int:
    """Fill memory from pieces; the bytes that there were.

    Raises:
        TargetFull.
    """
    size = 0
    closing: Any = pieces
    async with aclosing(closing):
        async for piece in pieces:
            put(piece, target, size)
            size += len(piece)
    return size


class BlobReaders:
    """The threads of a store, which are there from the first read on."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="blobs")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Start no more; what runs ends by itself."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
