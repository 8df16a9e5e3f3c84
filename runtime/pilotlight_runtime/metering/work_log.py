"""How long the batches of a node's containers took since the last report. Bounded; the latest durations are kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pilotlight_core.model.messages.ran import BatchesRan

MOST_KINDS = 512
"""Pairs of container and batch size in one report; further ones are left out of it."""
MOST_OF_ONE = 32
"""Batch sizes of one container, so that none keeps the others out of the report."""
MOST_MS = 8
"""Durations of one batch size of one container."""


@dataclass(frozen=True, kw_only=True)
class WorkKey:
    """The container that ran batches."""

    container: str
    version: str
    slice: str


@dataclass(kw_only=True, slots=True)
class BatchDurations:
    """The last durations of one batch size, and how many there were in all."""

    count: int = 0
    ms: list[float] = field(default_factory=list)

    def add(self, ms: float) -> None:
        if len(self.ms) < MOST_MS:
            self.ms.append(ms)
        else:
            self.ms[self.count % MOST_MS] = ms
        self.count += 1


class WorkLog:
    """The batches that ran since the last `take`."""

    def __init__(self) -> None:
        self._times: dict[tuple[WorkKey, int], BatchDurations] = {}
        self._of: Counter[WorkKey] = Counter()

    def add(self, worker: WorkKey, batch: int, ms: float) -> None:
        """A batch of `batch` items ended well after `ms`."""
        times = self._times.get((worker, batch))
        if times is None:
            if len(self._times) >= MOST_KINDS or self._of[worker] >= MOST_OF_ONE:
                return
            self._of[worker] += 1
            times = self._times[worker, batch] = BatchDurations()
        times.add(ms)

    def take(self) -> tuple[BatchesRan, ...]:
        """Return everything and begin anew."""
        taken, self._times = self._times, {}
        self._of.clear()
        return tuple(
            BatchesRan(
                container=worker.container,
                version=worker.version,
                slice=worker.slice,
                batch=batch,
                count=times.count,
                ms=tuple(times.ms),
            )
            for (worker, batch), times in taken.items()
        )
