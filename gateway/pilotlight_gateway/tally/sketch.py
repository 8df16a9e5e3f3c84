"""A sketch of durations: counts by bucket, from which quantiles are read that are wrong by at most 1.6 %.

Buckets are log-linear, as those of HdrHistogram (Tene): a microsecond wide up to 64 of them, and from there each power
of two has 32 of one width. A value in the middle of its bucket is off by at most half a width, 1/64 of the value; below
32 microseconds by half a microsecond. Two sketches are added by adding their counts, in any order, so what several
gateways saw comes to what one would have seen. Beyond `MOST_BUCKETS` the lowest buckets become one, as in the
collapsing DDSketch (Masson, Rim and Lee, VLDB 2019): high quantiles stay as right as they are.

A quantile is that of the sample: the smallest value that has at least the part q of all below or at it ("inverted
CDF", the first of Hyndman and Fan, 1996).
"""

from __future__ import annotations

import math

from mypy_extensions import i64

from pilotlight_core.model.messages.seeing.tallies import MOST_BUCKETS, SketchCounts

LONGEST_US = 1 << 40
LONGEST_MS = LONGEST_US / 1000.0
"""Twelve days: what is longer counts as this."""


def bucket_of(us: int) -> int:
    """The bucket of so many microseconds."""
    shift = us.bit_length() - 6
    return us if shift <= 0 else (shift << 5) + (us >> shift)


def middle_of(bucket: int) -> float:
    """The middle of a bucket, in milliseconds."""
    if bucket < 64:
        return (bucket + 0.5) / 1000.0
    shift = (bucket >> 5) - 1
    return (((bucket & 31) + 32) * 2 + 1) * (1 << shift) / 2000.0


class Sketch:
    """Durations in milliseconds."""

    __slots__ = ("counts", "most", "sum")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.sum = 0.0
        self.most = 0.0

    def add(self, ms: float, times: int = 1) -> None:
        """A duration was seen so many times."""
        if ms < 0.0:
            ms = 0.0  # of a clock that was set back
        us, shift = i64(ms * 1000.0) if ms < LONGEST_MS else i64(LONGEST_US), i64(0)
        while us >> shift >= 64:
            shift += 1
        bucket = int((shift << 5) + (us >> shift))
        counts = self.counts
        seen = counts.get(bucket, 0)
        counts[bucket] = seen + times
        self.sum += ms * times
        if ms > self.most:
            self.most = ms
        if seen == 0 and len(counts) > MOST_BUCKETS:
            self._collapse()

    def merge(self, other: SketchCounts) -> None:
        """Add what another sketch counted."""
        counts = self.counts
        for bucket, times in zip(other.buckets, other.counts, strict=False):
            counts[bucket] = counts.get(bucket, 0) + times
        self.sum += other.sum
        if other.most > self.most:
            self.most = other.most
        if len(counts) > MOST_BUCKETS:
            self._collapse()

    def value(self) -> SketchCounts:
        """What was counted, as it is told and kept."""
        if not self.counts:
            return EMPTY
        buckets = sorted(self.counts)
        counts = self.counts
        return SketchCounts(tuple(buckets), tuple([counts[bucket] for bucket in buckets]), self.sum, self.most)

    def _collapse(self) -> None:
        counts = self.counts
        order = sorted(counts)
        surplus = len(order) - MOST_BUCKETS
        kept = order[surplus]
        for bucket in order[:surplus]:
            counts[kept] += counts.pop(bucket)


EMPTY = SketchCounts()


def count_of(sketch: SketchCounts) -> int:
    """How many durations were seen."""
    return sum(sketch.counts)


def mean_of(sketch: SketchCounts) -> float:
    """Exactly; 0: there are none."""
    count = sum(sketch.counts)
    return sketch.sum / count if count else 0.0


def quantile_of(sketch: SketchCounts, part: float) -> float:
    """The smallest duration that has at least `part` of all below or at it; 0: there are none."""
    count = sum(sketch.counts)
    if not count:
        return 0.0
    rank, seen = max(1, math.ceil(part * count - 1e-9)), 0
    for bucket, times in zip(sketch.buckets, sketch.counts, strict=False):
        seen += times
        if seen >= rank:
            return min(middle_of(bucket), sketch.most)
    return sketch.most
