"""How often models were called over this gateway, and how long it took: what the protocol's statistics show.

They are counts of one process since its start, by tenant, and no bill: the ledger has that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from cachetools import LRUCache

REMEMBERED = 4_096
"""Models of tenants; who is forgotten counts from 0."""
NS_PER_MS = 1_000_000
QUEUED = ("queue", "start")
COMPUTED = ("execute", "batch_wait")


class CountedModel(NamedTuple):
    """Whose calls of what are counted: its name without a version, and the version."""

    tenant: str
    name: str
    version: str


class ModelCounts:
    """Of one model: numbers of calls and nanoseconds."""

    __slots__ = ("compute_ns", "failed", "failed_ns", "input_ns", "last_ms", "output_ns", "queue_ns", "succeeded",
                 "succeeded_ns")  # fmt: skip

    def __init__(self) -> None:
        self.succeeded = self.succeeded_ns = self.failed = self.failed_ns = 0
        self.queue_ns = self.compute_ns = self.input_ns = self.output_ns = 0
        self.last_ms = 0
        """The unix millisecond of the last call's end."""


class InferenceCounts:
    """Counts calls by model. `wall`: unix seconds."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._models: LRUCache[CountedModel, ModelCounts] = LRUCache(REMEMBERED)

    def note_success(self, model: CountedModel, total_ms: float, stages: dict[str, float]) -> None:
        """Count a call that ended well after `total_ms`."""
        counts = self._of(model)
        counts.succeeded += 1
        counts.succeeded_ns += _ns(total_ms)
        counts.queue_ns += _ns(sum(stages.get(name, 0.0) for name in QUEUED))
        counts.compute_ns += _ns(sum(stages.get(name, 0.0) for name in COMPUTED))
        counts.input_ns += _ns(stages.get("gateway", 0.0))
        counts.output_ns += _ns(stages.get("respond", 0.0))

    def note_failure(self, model: CountedModel, total_ms: float) -> None:
        """Count a call that failed."""
        counts = self._of(model)
        counts.failed += 1
        counts.failed_ns += _ns(total_ms)

    def of_tenant(self, tenant: str) -> list[tuple[CountedModel, ModelCounts]]:
        """All of a tenant's calls, by the name of the model."""
        return sorted(((model, self._models[model]) for model in list(self._models) if model.tenant == tenant),
                      key=lambda one: one[0])  # fmt: skip

    def of_model(self, model: CountedModel) -> ModelCounts:
        """Of one model, 0 if it was not called yet."""
        return self._models.get(model) or ModelCounts()

    def _of(self, model: CountedModel) -> ModelCounts:
        counts = self._models.get(model)
        if counts is None:
            counts = self._models[model] = ModelCounts()
        counts.last_ms = int(self._wall() * 1000)
        return counts


def _ns(ms: float) -> int:
    return round(ms * NS_PER_MS)
