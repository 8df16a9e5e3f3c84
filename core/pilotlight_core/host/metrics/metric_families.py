"""Families of metrics: gauges, counters and histograms, with closed or bounded labels.

Processes count in plain numbers, which are turned into families at a scrape. Labels are closed sets (codes, states,
stages) or go through a `BoundedLabel`; none names a tenant,
but for what goes out of a node, which is asked for by tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    Exemplar,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    Timestamp,
)

from pilotlight_core.host.metrics.histogram import Histogram

OTHER = "other"
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
    family.add_metric((), _buckets(observed), observed.sum)
    return family


def histogram_by(name: str, text: str, label: str, observed: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=(label,))
    for key, value in observed.items():
        family.add_metric((key,), _buckets(value), value.sum)
    return family


def _buckets(observed: Histogram) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    """With the last trace of each bucket that has one: only OpenMetrics shows them."""
    found: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    for place, (bound, count) in enumerate(observed.buckets()):
        known = observed.exemplars.get(place)
        if known is None:
            found.append((bound, count))
        else:
            trace_id, value, at = known
            found.append((bound, count, Exemplar({"trace_id": trace_id}, value, Timestamp(int(at), int(at % 1 * 1e9)))))
    return found
