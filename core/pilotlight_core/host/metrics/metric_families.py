"""Families of metrics: gauges, counters and histograms, with closed or bounded labels.

Processes count in plain numbers, which are turned into families at a scrape. Labels are closed sets (codes, states,
stages) or go through a `BoundedLabel`; none names a tenant.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

OTHER = "other"
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds of buckets."""
MetricSource = Callable[[], Iterable[Metric]]


class BoundedLabel:
    """The first `limit` values of a label; later ones become "other".

    Without it a label chosen by callers would create unboundedly many time series.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._limit:
            return OTHER
        self._known.add(value)
        return value

    def __len__(self) -> int:
        return len(self._known)


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


def gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def gauge_by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


def counter(name: str, text: str, value: float) -> Metric:
    """A counter is shown as `{name}_total`."""
    return CounterMetricFamily(name, text, value=value)


def counter_by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


def histogram(name: str, text: str, observed: Histogram) -> Metric:
    family = HistogramMetricFamily(name, text)
    family.add_metric((), observed.buckets(), observed.sum)
    return family


def histogram_by(name: str, text: str, label: str, observed: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=(label,))
    for key, value in observed.items():
        family.add_metric((key,), value.buckets(), value.sum)
    return family
