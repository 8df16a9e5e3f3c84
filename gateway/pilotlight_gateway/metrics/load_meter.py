"""The load of this gateway over the last half minute, from counters that only rise. Pure: time is an argument."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotlight_core.host.metrics.histogram import Histogram

SAMPLE_EVERY_S = 2.0
SAMPLES = 16
"""That are kept: half a minute."""
PART = 0.99
"""Of the callbacks of the loop that were at most so late as is told."""


class _LoadSample(NamedTuple):
    at: float
    requests: int
    lags: tuple[int, ...]
    """Counts by bucket."""


@dataclass(kw_only=True)
class LoadMeter:
    """Takes a sample each `SAMPLE_EVERY_S`; `at` is monotonic seconds."""

    _samples: deque[_LoadSample] = field(default_factory=lambda: deque(maxlen=SAMPLES))

    def sample(self, at: float, requests: int, lags: Histogram) -> tuple[float, float]:
        """Take a sample of all requests so far, and of how late the loop was; requests per second, and the lag."""
        self._samples.append(_LoadSample(at, requests, tuple(lags.counts)))
        first, last = self._samples[0], self._samples[-1]
        passed_s = last.at - first.at
        rate = (last.requests - first.requests) / passed_s if passed_s > 0 else 0.0
        new = [after - before for before, after in zip(first.lags, last.lags, strict=True)]
        return rate, _lateness(new, lags.bounds)


def _lateness(counts: list[int], bounds: tuple[float, ...]) -> float:
    """The upper bound of the bucket up to which `PART` of the observations are; 0: there are none."""
    total, seen = sum(counts), 0
    for count, bound in zip(counts, (*bounds, bounds[-1]), strict=True):
        seen += count
        if total and seen >= PART * total:
            return bound
    return 0.0
