"""The gateway's own counters, and the collector that Prometheus scrapes.

A call changes a dozen numbers, so these are plain lists; a scrape turns them into Prometheus families. Labels are
closed sets (codes, states, stages, routes), never tenants.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
FIRST_CHUNK_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""OpenTelemetry's buckets for the time to the first token."""
MetricSource = Callable[[], Iterable[Metric]]
STAGES = ("gateway", "queue", "start", "transport", "batch_wait", "execute", "respond")


class Histogram:
    """Counts of observations by bucket, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts by upper bound, as Prometheus expects them."""
        total, found = 0, []
        for bound, counted in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += counted
            found.append((bound, float(total)))
        return found


class GatewayMetrics(Collector):
    """Collects the gateway's own counters and its `sources`."""

    def __init__(self, sources: Sequence[MetricSource] = ()) -> None:
        self._sources = sources
        self.stages = {stage: Histogram() for stage in STAGES}
        self.calls: dict[tuple[str, str], int] = defaultdict(int)
        """By (outcome, code): ("ok", "") or ("error", the error's code)."""
        self.duration = Histogram()
        self.cold_start = Histogram()
        self.first_chunk = Histogram(FIRST_CHUNK_SECONDS)
        self.requests: dict[tuple[str, int], int] = defaultdict(int)
        """By (route, status)."""
        self.folded: dict[str, int] = {}
        """Usage events by fold result, for all gateways."""
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def call_ended(self, stages: dict[str, float], total_ms: float, cold_start: dict[str, float] | None) -> None:
        """Count a successful call; times in ms."""
        self.calls["ok", ""] += 1
        self.duration.observe(total_ms / 1000)
        for stage, histogram in self.stages.items():
            spent = stages.get(stage)
            if spent is not None:
                histogram.observe(spent / 1000)
        if cold_start is not None:
            self.cold_start.observe(sum(cold_start.values()) / 1000)

    def call_failed(self, code: str) -> None:
        self.calls["error", code] += 1

    def exposition(self) -> bytes:
        """The metrics in Prometheus text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._histograms()
        calls = CounterMetricFamily("pilotlight_calls", "Calls that ended.", labels=("outcome", "code"))
        for (outcome, code), counted in self.calls.items():
            calls.add_metric((outcome, code), counted)
        yield calls
        requests = CounterMetricFamily("pilotlight_http_requests", "HTTP requests.", labels=("route", "status"))
        for (route, status), counted in self.requests.items():
            requests.add_metric((route, str(status)), counted)
        yield requests
        folded = CounterMetricFamily("pilotlight_usage_events", "Usage events folded.", labels=("result",))
        for result, counted in self.folded.items():
            folded.add_metric((result,), counted)
        yield folded
        for source in self._sources:
            yield from source()

    def _histograms(self) -> Iterator[Metric]:
        stages = HistogramMetricFamily(
            "pilotlight_call_stage_seconds", "Where the time of successful calls went.", labels=("stage",)
        )
        for stage, histogram in self.stages.items():
            stages.add_metric((stage,), histogram.buckets(), histogram.sum)
        yield stages
        for name, text, histogram in (
            ("pilotlight_call_duration_seconds", "Arrival to answer of successful calls.", self.duration),
            ("pilotlight_cold_start_seconds", "Container starts that a call waited for.", self.cold_start),
            ("pilotlight_time_to_first_chunk_seconds", "Arrival to the first chunk of a stream.", self.first_chunk),
        ):
            family = HistogramMetricFamily(name, text)
            family.add_metric((), histogram.buckets(), histogram.sum)
            yield family


def gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def gauge_by(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family
