"""How far a batch is: which of its items are out, and what of it is settled for good. Pure.

Items are submitted in order, and so many at a time. Chunks are settled in order too: what comes before the first chunk
that is not never has to be looked at again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from pilotlight_core.model.records.batches import BatchChunk, ItemCounts

OUT_AT_MOST = 500
"""Items that wait or run at a time."""
CHUNKS_AT_MOST = 8
"""Chunks that are begun and not settled: an item that takes long holds the others up only after thousands of them."""


class _Begun(msgspec.Struct):
    left: int
    counts: ItemCounts
    seen: set[str]


class BatchProgress:
    """Of one batch, in memory of its driver."""

    def __init__(self, chunks: Sequence[BatchChunk], settled_chunks: int, settled: ItemCounts) -> None:
        self._sizes = [chunk.count for chunk in chunks]
        self.settled_chunks = settled_chunks
        self.settled = settled
        self._begun: deque[_Begun] = deque()
        self._out: dict[str, int] = {}
        self.submitted = sum(self._sizes[:settled_chunks])

    @property
    def out(self) -> int:
        """Items that wait or run."""
        return len(self._out)

    @property
    def has_room(self) -> bool:
        """Whether one more item may be submitted."""
        return len(self._out) < OUT_AT_MOST

    @property
    def may_begin(self) -> bool:
        """Whether one more chunk may be begun."""
        return len(self._begun) < CHUNKS_AT_MOST

    @property
    def next_chunk(self) -> int:
        """The first that is not begun."""
        return self.settled_chunks + len(self._begun)

    @property
    def all_begun(self) -> bool:
        """Whether there is no further chunk."""
        return self.next_chunk == len(self._sizes)

    @property
    def counts(self) -> ItemCounts:
        """All that have ended, as far as is known."""
        found = self.settled
        for begun in self._begun:
            found = found.add(begun.counts)
        return found

    def begin(self) -> int:
        """Begin the next chunk; its number."""
        number = self.next_chunk
        self._begun.append(_Begun(self._sizes[number], ItemCounts(), set()))
        return number

    def submit(self, job: str, chunk: int) -> None:
        """An item of a begun chunk is a job now; before it is stored, so that its end cannot be missed."""
        self._out[job] = chunk
        self._begun[chunk - self.settled_chunks].seen.add(job)
        self.submitted += 1

    def knows(self, job: str, chunk: int) -> bool:
        """Whether an item of a begun chunk was submitted."""
        return job in self._begun[chunk - self.settled_chunks].seen

    def end(self, job: str, state: str) -> bool:
        """A job has ended; False: it is none of those that are out."""
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
        """Those that are out."""
        return list(self._out)
