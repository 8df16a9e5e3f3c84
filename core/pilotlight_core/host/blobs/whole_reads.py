"""Whole blobs, each read in one thread of a store's own.

A large file is many such blobs, and reading it is as fast as many of them are read at once. Pieces that go through the
event loop one by one cost it a turn each; here a blob costs one, and its bytes go through one small piece of memory,
which stays in the processor's cache.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

READERS = 24
"""Threads of a store that read, and with it the blobs that are read at once: they wait for the far end, mostly."""
BUFFER = 2**18
T = TypeVar("T")


class BlobSource(Protocol):
    """The content of a blob, in one thread."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill memory, or its beginning; how many bytes that were; 0 at the end. Raises BlobsDown."""
        ...


class _Memory(threading.local):
    """A thread's piece of memory, for all that it reads."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(BUFFER))


_memory = _Memory()


def read_pieces(source: BlobSource, take: Callable[[memoryview], object]) -> None:
    """Give all of a content to `take`, in pieces that are gone with the next one."""
    view = _memory.view
    while count := source.readinto(view):
        take(view[:count])


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
