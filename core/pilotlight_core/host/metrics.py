"""Prometheus metrics of one process, with bounded labels."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

OTHER = "other"


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


class ProcessMetrics:
    """One process's metrics: create them with `registry=metrics.registry`, and serve `render()`."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._labels: dict[str, BoundedLabel] = {}

    def bounded(self, label: str, limit: int = 100) -> BoundedLabel:
        """The one `BoundedLabel` of that label."""
        return self._labels.setdefault(label, BoundedLabel(limit))

    def render(self) -> bytes:
        return generate_latest(self.registry)
