"""The progress of a batch. Pure.

Chunks are begun and settled in order, so a later driver skips all before the first unsettled one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from pilotlight_core.model.records.batches import BatchChunk, ItemCounts

OUT_AT_MOST = 500
"""Jobs of a batch that are queued or running."""
CHUNKS_AT_MOST = 8
"""Unsettled chunks. So many that a slow item delays only items thousands behind it."""


class _Begun(msgspec.Struct):
    left: int
    counts: ItemCounts
    seen: set[str]


class BatchProgress:
    """Counts submitted and ended items."""

    def __init__(self, chunks: Sequence[BatchChunk], settled_chunks: int, settled: ItemCounts) -> None:
        self._sizes = [chunk.count for chunk in chunks]
        self.settled_chunks = settled_chunks
        self.settled = settled
        self._begun: deque[_Begun] = deque()
        self._out: dict[str, int] = {}
        self.submitted = sum(self._sizes[:settled_chunks])

    @property
    def out(self) -> int:
        """The number of queued and running jobs."""
        return len(self._out)

    @property
    def has_room(self) -> bool:
        return len(self._out) < OUT_AT_MOST

    @property
    def may_begin(self) -> bool:
        return len(self._begun) < CHUNKS_AT_MOST

    @property
    def next_chunk(self) -> int:
        return self.settled_chunks + len(self._begun)

    @property
    def all_begun(self) -> bool:
        return self.next_chunk == len(self._sizes)

    @property
    def counts(self) -> ItemCounts:
        """Known ends of items."""
        found = self.settled
        for begun in self._begun:
            found = found.add(begun.counts)
        return found

    def begin(self) -> int:
        """Begin the next chunk; returns its number."""
        number = self.next_chunk
        self._begun.append(_Begun(self._sizes[number], ItemCounts(), set()))
        return number

    def submit(self, job: str, chunk: int) -> None:
        """Count an item. Called before its job is stored, so that no end is missed."""
        self._out[job] = chunk
        self._begun[chunk - self.settled_chunks].seen.add(job)
        self.submitted += 1

    def knows(self, job: str, chunk: int) -> bool:
        return job in self._begun[chunk - self.settled_chunks].seen

    def end(self, job: str, state: str) -> bool:
        """Count the end of a job; False if it is not `out`."""
        chunk = self._out.pop(job, None)
        if chunk is None:
            return False
        begun = self._begun[chunk - self.settled_chunks]
        begun.left -= 1
        begun.counts = begun.counts.plus(state)
        while self._begun and not self._begun[0].left:
            self.settled = self.settled.add(self._begun.popleft().counts)
            self.settled_chunks += 1
        return True

    def jobs(self) -> list[str]:
        return list(self._out)
