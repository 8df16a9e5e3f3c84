"""Metrics with labels that cannot grow for ever."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

OTHER = "other"


class BoundedLabel:
    """Label values, kept to the first `limit` that appear; later ones are "other".

    A label that callers choose would otherwise make a time series for each value, for ever.
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


class ProcessMetrics:
    """One process's metrics: make them with `registry=metrics.registry`, and serve `render()`."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._labels: dict[str, BoundedLabel] = {}

    def bounded(self, label: str, limit: int = 100) -> BoundedLabel:
        """The guard of one label; the same for all who ask for that label."""
        return self._labels.setdefault(label, BoundedLabel(limit))

    def render(self) -> bytes:
        """The Prometheus text of everything registered."""
        return generate_latest(self.registry)
