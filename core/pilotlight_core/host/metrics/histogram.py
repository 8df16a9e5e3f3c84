"""Counts of observations by bucket; `metric_families` makes a family of them at a scrape."""

from __future__ import annotations

from bisect import bisect_left

SECONDS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
"""Bounds of buckets."""
FIRST_CHUNK_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""OpenTelemetry's buckets for the time to the first token."""
EXEMPLAR_S = 1.0


class Histogram:
    """Counts of observations by bucket, and their sum."""

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.exemplars: dict[int, tuple[str, float, float]] = {}
        """By bucket: a trace's id, the value, and the unix second."""

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def note_exemplar(self, value: float, trace_id: str, at: float) -> None:
        """Keep the trace of a value that was observed, at a unix second: the last of its bucket, for OpenMetrics."""
        self.exemplars[bisect_left(self.bounds, value)] = (trace_id, value, at)

    def wants_exemplar(self, value: float, at: float) -> bool:
        """Whether the last trace of a value's bucket is a second old: more often nobody reads them."""
        last = self.exemplars.get(bisect_left(self.bounds, value))
        return last is None or at - last[2] >= EXEMPLAR_S

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts by upper bound, as Prometheus expects them."""
        total = 0
        found: list[tuple[str, float]] = []
        for bound, counted in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += counted
            found.append((bound, float(total)))
        return found
