"""Throughput curves T(type, slice, batch) -> (throughput, p95): what a function does on what it may run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WHOLE = "whole"
"""The key of a whole device; several are "whole:4", a MIG profile is its key ("3g")."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One measured batch size: items per second, and the 95th percentile of one batch in ms."""

    batch: int
    throughput: float
    p95_ms: float

    def __post_init__(self) -> None:
        if self.batch < 1 or self.throughput <= 0 or self.p95_ms <= 0:
            raise ValueError(f"a point of a curve is positive in all it says: {self}")


class Curves:
    """The curves of one function, by (device name, slice key). Immutable; equal only to itself."""

    def __init__(self, points: Mapping[tuple[str, str], tuple[Point, ...]]) -> None:
        self._points = dict(points)

    def knows(self, device: str, cut: str) -> bool:
        """Whether the function was measured there."""
        return (device, cut) in self._points

    def best(self, device: str, cut: str, slo_ms: float | None = None) -> Point | None:
        """The batch size with most throughput within the service level; None if it was not measured or none is."""
        points = self._points.get((device, cut), ())
        within = [point for point in points if slo_ms is None or point.p95_ms <= slo_ms]
        return max(within, key=lambda point: (point.throughput, -point.batch), default=None)


def whole(count: int = 1) -> str:
    """The slice key of `count` whole devices."""
    return WHOLE if count == 1 else f"{WHOLE}:{count}"
