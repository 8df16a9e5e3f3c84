"""What was counted of a function since this gateway began, in numbers that only rise: what Prometheus counts with.

Of fixed size, filled from minutes that are over. A duration is counted in the bucket of the middle of its sketch's, so
it may be off by 1.6 %.
"""

from __future__ import annotations

from bisect import bisect_left

from pilotlight_core.host.metrics.histogram import FIRST_CHUNK_SECONDS, SECONDS
from pilotlight_core.model.messages.seeing.tallies import MOST_UNITS, CallTotals, FunctionTally, SketchCounts
from pilotlight_gateway.tally.sketch import middle_of
from pilotlight_gateway.tally.tally import MOST_MS, gpu_ms_of

GAP_SECONDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0,
)  # fmt: skip
"""vLLM's and OpenTelemetry's buckets for the time between two tokens, and some below them."""


class BucketSums:
    """Counts by bucket, and the sum."""

    __slots__ = ("bounds", "counts", "seconds")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, sketch: SketchCounts) -> None:
        """Add durations in milliseconds."""
        counts, bounds = self.counts, self.bounds
        for bucket, times in zip(sketch.buckets, sketch.counts, strict=False):
            counts[bisect_left(bounds, middle_of(bucket) / 1000.0)] += times
        self.seconds += sketch.sum / 1000.0

    def merge(self, counts: tuple[int, ...], seconds: float) -> None:
        """Add what another one has."""
        self.counts = [own + more for own, more in zip(self.counts, counts or [0] * len(self.counts), strict=True)]
        self.seconds += seconds


class TotalCounts:
    """Of one function."""

    __slots__ = (
        "batch_sizes", "batched", "cold_calls", "durations", "ended", "failures", "first_chunks", "gaps", "gpu_ms",
        "retried", "units",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ended = self.cold_calls = self.retried = self.batched = 0
        self.gpu_ms = self.batch_sizes = 0.0
        self.failures: dict[str, int] = {}
        self.units: dict[str, int] = {}
        self.durations = BucketSums(SECONDS)
        self.first_chunks = BucketSums(FIRST_CHUNK_SECONDS)
        self.gaps = BucketSums(GAP_SECONDS)

    def add(self, tally: FunctionTally) -> None:
        """Add what was counted in a window."""
        self.ended += tally.ended
        self.cold_calls += tally.cold_calls
        self.retried += tally.retried
        self.gpu_ms += gpu_ms_of(tally)
        self.durations.add(tally.durations)
        self.first_chunks.add(tally.first_chunks)
        self.gaps.add(tally.gaps)
        for size, batch in tally.batches.items():
            self.batched += batch.calls
            self.batch_sizes += size * batch.calls
        _add_counts(self.failures, tally.failures)
        self._add_units(tally.units)

    def merge(self, other: CallTotals) -> None:
        """Add what was counted of another version."""
        self.ended += other.ended
        self.cold_calls += other.cold_calls
        self.retried += other.retried
        self.gpu_ms += other.gpu_ms
        self.batched += other.batched
        self.batch_sizes += other.batch_sizes
        self.durations.merge(other.durations, other.durations_s)
        self.first_chunks.merge(other.first_chunks, other.first_chunks_s)
        self.gaps.merge(other.gaps, other.gaps_s)
        _add_counts(self.failures, other.failures)
        self._add_units(other.units)

    def value(self) -> CallTotals:
        """What was counted."""
        return CallTotals(
            ended=self.ended,
            failures=dict(self.failures),
            durations=tuple(self.durations.counts),
            durations_s=self.durations.seconds,
            first_chunks=tuple(self.first_chunks.counts),
            first_chunks_s=self.first_chunks.seconds,
            gaps=tuple(self.gaps.counts),
            gaps_s=self.gaps.seconds,
            cold_calls=self.cold_calls,
            retried=self.retried,
            gpu_ms=self.gpu_ms,
            batched=self.batched,
            batch_sizes=min(self.batch_sizes, MOST_MS),
            units=dict(self.units),
        )

    def _add_units(self, units: dict[str, int]) -> None:
        for unit, count in units.items():
            if unit in self.units or len(self.units) < MOST_UNITS:
                self.units[unit] = min(self.units.get(unit, 0) + count, 1 << 53)


def _add_counts(counts: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count
