"""The gateway's own counters.

A call changes a dozen numbers, so these are plain lists; a scrape turns them into Prometheus families. Labels are
closed sets (codes, states, stages, routes), never tenants.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from pilotlight_core.host.metrics.histogram import FIRST_CHUNK_SECONDS, SECONDS, Histogram
from pilotlight_core.host.metrics.metric_families import histogram, histogram_by
from pilotlight_core.model.errors import CODES, PLATFORMS_FAULT
from pilotlight_core.model.messages.seeing.tallies import STAGES
from pilotlight_core.model.tracing.trace_context import own_trace_id

OK = ("ok", "")
SHORTEST = SECONDS[0]
LEVELS = ("availability", "unary", "first_chunk", "gap")
"""What a function's own service levels are of."""


class GatewayMetrics:
    """Counts requests and calls."""

    def __init__(self) -> None:
        self.stages = {stage: Histogram() for stage in STAGES}
        self.calls: dict[tuple[str, str], int] = {OK: 0, **{("error", code): 0 for code in CODES}}
        """By (outcome, code): ("ok", "") or ("error", the error's code). All are there from the start: of a counter
        that appears with its first failures nobody sees that it rose."""
        self.duration = Histogram()
        self.failed_duration = Histogram()
        self.levels: dict[tuple[str, bool], int] = {(level, good): 0 for level in LEVELS for good in (True, False)}
        """Calls by service level, and whether they kept it; those that were available are in `calls`."""
        self.cold_start = Histogram()
        self.first_chunk = Histogram(FIRST_CHUNK_SECONDS)
        self.requests: dict[tuple[str, int], int] = defaultdict(int)
        """By (route, status)."""
        self.break_glass = 0

    def call_ended(self, stages: dict[str, float], total_ms: float, cold_start: dict[str, float] | None) -> None:
        """Count a successful call; times in ms."""
        self.calls[OK] += 1
        self.duration.observe(total_ms / 1000)
        histograms = self.stages
        for stage, spent in stages.items():
            seen = histograms.get(stage)
            if seen is not None:  # as `observe`, without seven calls of it: most stages of most calls take no time
                seconds = spent / 1000
                seen.counts[0 if seconds <= SHORTEST else bisect_left(SECONDS, seconds)] += 1
                seen.sum += seconds
        if cold_start is not None:
            self.cold_start.observe(sum(cold_start.values()) / 1000)

    def request_count(self) -> int:
        """Requests that have ended."""
        return sum(self.requests.values())

    def call_failed(self, code: str, total_ms: float) -> None:
        """Count a call that failed."""
        self.calls["error", code] += 1
        self.failed_duration.observe(total_ms / 1000)
        if code in PLATFORMS_FAULT:
            self.levels["availability", False] += 1

    def note_exemplar(self, total_ms: float, trace_id: str, at: float, *, failed: bool = False) -> None:
        """Show the trace of a call that was counted beside its duration; `at`: unix seconds."""
        observed = self.failed_duration if failed else self.duration
        observed.note_exemplar(total_ms / 1000, trace_id, at)

    def note_sampled(self, total_ms: float, call_id: str, at: float) -> None:
        """As `note_exemplar`, of a call that was sampled and began its trace, and of few of many."""
        seconds = total_ms / 1000
        if self.duration.wants_exemplar(seconds, at):
            self.duration.note_exemplar(seconds, own_trace_id(call_id), at)

    def note_level(self, level: str, *, good: bool) -> None:
        """Count a call by one of its function's own service levels."""
        self.levels[level, good] += 1

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        text = "Where the time of successful calls went."
        yield histogram_by("pilotlight_call_stage_seconds", text, "stage", self.stages)
        text, durations = "Arrival to answer.", {"ok": self.duration, "error": self.failed_duration}
        yield histogram_by("pilotlight_call_duration_seconds", text, "outcome", durations)
        for name, text, observed in (
            ("pilotlight_cold_start_seconds", "Container starts that a call waited for.", self.cold_start),
            ("pilotlight_time_to_first_chunk_seconds", "Arrival to the first chunk of a stream.", self.first_chunk),
        ):
            yield histogram(name, text, observed)
        calls = CounterMetricFamily("pilotlight_calls", "Calls that ended.", labels=("outcome", "code"))
        for (outcome, code), counted in self.calls.items():
            calls.add_metric((outcome, code), counted)
        yield calls
        text = "Calls that had a service level of their function, and whether they kept it."
        levels = CounterMetricFamily("pilotlight_slo_calls", text, labels=("slo", "good"))
        for (level, good), counted in (self.levels | {("availability", True): self.calls[OK]}).items():
            levels.add_metric((level, "true" if good else "false"), counted)
        yield levels
        requests = CounterMetricFamily("pilotlight_http_requests", "HTTP requests.", labels=("route", "status"))
        for (route, status), counted in self.requests.items():
            requests.add_metric((route, str(status)), counted)
        yield requests
        text = "Requests with a break-glass key, which is for days on which nobody can log in."
        used = CounterMetricFamily("pilotlight_break_glass_requests", text)
        used.add_metric((), self.break_glass)
        yield used
