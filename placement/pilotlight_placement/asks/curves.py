"""Throughput curves T(type, slice, batch) -> (throughput, p95) of a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pilotlight_core.model.api.curve_api import Curve, CurvePoint, CurveSource
from pilotlight_core.model.placing import MIN_THROUGHPUT

WHOLE = "whole"
"""The key of a whole device; of several "whole:4", of a MIG instance its profile's key ("3g"), of a share "share:250".
"""


@dataclass(frozen=True, kw_only=True)
class ThroughputPoint:
    """One measured batch size: items per second, and the 95th percentile of one batch in ms.

    Only `hard` points exclude places; others, which were learnt or are of an earlier version, only order them.
    """

    batch: int
    throughput: float
    p95_ms: float
    source: CurveSource = CurveSource.DECLARED
    samples: int = 0
    hard: bool = True
    software: bool = False

    def __post_init__(self) -> None:
        if self.batch < 1 or self.throughput <= 0 or self.p95_ms <= 0:
            raise ValueError(f"a point of a curve is positive in all it says: {self}")


Points = Mapping[tuple[str, str], tuple[ThroughputPoint, ...]]


class Curves:
    """The curves of one function, by (device name, slice key). Immutable; equal only to itself."""

    def __init__(self, points: Points) -> None:
        self.points = dict(points)

    def knows(self, device: str, cut: str) -> bool:
        return (device, cut) in self.points

    def best(self, device: str, cut: str, slo_ms: float | None = None) -> ThroughputPoint | None:
        """The batch size with the highest throughput within the service level; None if there is none."""
        points = self.points.get((device, cut), ())
        within = [point for point in points if slo_ms is None or point.p95_ms <= slo_ms]
        return max(within, key=lambda point: (point.throughput, -point.batch), default=None)

    def is_slow(self, device: str, cut: str, slo_ms: float | None) -> bool:
        return self.knows(device, cut) and self.best(device, cut, slo_ms) is None

    def rules_out(self, device: str, cut: str, slo_ms: float | None) -> bool:
        """Whether it is slow there by a `hard` point, so that nothing should run there."""
        slow = self.is_slow(device, cut, slo_ms)
        return slow and any(point.hard for point in self.points[device, cut])


def whole(count: int = 1) -> str:
    return WHOLE if count == 1 else f"{WHOLE}:{count}"


def share(units: int) -> str:
    return f"share:{units}"


def ranked(declared: Points, own: Iterable[Curve], earlier: Iterable[Curve], created_at: float) -> Points:
    """The most trustworthy point of each slice and batch size.

    The order is measured, learnt, declared; points from before the version was created (unix seconds), or of the
    previous version, come last, because their code may differ.
    """
    best: Best = {}
    for key, points in declared.items():
        for point in points:
            _offer(best, key, DECLARED_RANK, point)
    for curves, inherited in ((own, False), (earlier, True)):
        for curve in curves:
            for at in curve.points:
                rank = rank_of(curve.source, stale=inherited or at.at < created_at)
                _offer(best, (curve.gpu, curve.slice), rank, point_of(curve, at, rank))
    return {key: tuple(point for _, (_, point) in sorted(found.items())) for key, found in best.items()}


DECLARED_RANK = 2


def rank_of(source: CurveSource, *, stale: bool) -> int:
    fresh = {CurveSource.MEASURED: 0, CurveSource.LEARNT: 1, CurveSource.DECLARED: DECLARED_RANK}[source]
    return fresh + DECLARED_RANK + 1 if stale else fresh


def point_of(curve: Curve, at: CurvePoint, rank: int) -> ThroughputPoint:
    """A point of the registry as decisions use it: only fresh measurements are `hard`."""
    return ThroughputPoint(
        batch=at.batch,
        throughput=max(at.throughput, MIN_THROUGHPUT),  # older records have no bound
        p95_ms=at.p95_ms,
        source=curve.source,
        samples=at.samples,
        hard=rank == 0,
        software=curve.software,
    )


Best = dict[tuple[str, str], dict[int, tuple[int, ThroughputPoint]]]
"""By slice and batch size: the rank of the point, and the point."""


def _offer(best: Best, key: tuple[str, str], rank: int, point: ThroughputPoint) -> None:
    mine = best.setdefault(key, {})
    if point.batch not in mine or rank < mine[point.batch][0]:
        mine[point.batch] = (rank, point)
