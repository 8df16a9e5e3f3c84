"""How the chunks of one stream came: the first one's wait, the gaps between the others, and a reader that is slow."""

from __future__ import annotations

import math

GAPS_HELD = 256
"""That are held until they are counted."""
LATE_PART = 0.05
"""A stream whose gaps keep their level has no more late ones than this part of them."""


class StreamPace:
    """Of one stream; instants are monotonic seconds."""

    __slots__ = ("first_chunk_ms", "gaps", "last_at", "late", "most_ms", "seen", "unread_ms")

    def __init__(self, first_chunk_ms: float, at: float, most_ms: float | None) -> None:
        self.first_chunk_ms = first_chunk_ms
        """From arrival to the first chunk."""
        self.most_ms = math.inf if most_ms is None else most_ms
        """The level of its gaps; inf: it has none."""
        self.last_at = at
        self.gaps: list[tuple[float, int]] = []
        """Milliseconds, and of how many chunks, since they were counted last."""
        self.seen = 0
        """Gaps so far."""
        self.late = 0
        """Those of them that were longer than their level."""
        self.unread_ms = 0.0
        """How long chunks waited for their reader."""

    def note(self, at: float, chunks: int) -> None:
        """So many chunks came at once: each counts with its part of the time since the last ones."""
        gap_ms = max(0.0, at - self.last_at) * 1000.0 / chunks
        self.last_at = at
        self.gaps.append((gap_ms, chunks))
        self.seen += chunks
        if gap_ms > self.most_ms:
            self.late += chunks

    @property
    def keeps_gaps(self) -> bool:
        """Whether nearly all gaps were within their level."""
        return self.late <= self.seen * LATE_PART
