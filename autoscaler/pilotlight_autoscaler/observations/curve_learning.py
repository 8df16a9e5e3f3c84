"""Throughput curves learnt from calls in use. Pure: time is an argument (seconds).

There is a `DecayingHistogram` of durations for each batch size on each kind of slice: after `MEMORY` batches an entry
has 1/e of its weight. Fewer than `FLOOR` batches make no point of a curve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from pilotlight_core.model.api.curve_api import MAX_BATCH, MAX_POINTS, Curve, CurvePoint, CurveSource
from pilotlight_core.model.messages.ran import BatchesRan

MEMORY = 500
FLOOR = 30
"""Fewer batches of one size on one kind of slice say little of a 95th percentile."""
STEP = math.log(1.04)
"""Buckets are 4 % wide."""
FADED = 1e-4
"""Buckets with a smaller part of all weight are dropped."""
LARGEST_SCALE = 1e9
MOST_VERSIONS = 4_096
"""The version with the oldest report is dropped first."""
MOST_KINDS = 512
"""Slices and batch sizes of one version."""
MOST_PER_S = 4_000
"""Durations of all nodes counted per second; larger fleets are sampled."""
MOST_AT_ONCE = 400
"""Of these, in one burst."""
WRITE_EVERY_S = 30.0
"""The shortest interval between two writes of a version's curve."""
MIN_CHANGE = 0.05
"""Smaller changes are not written."""

Where = tuple[str, str, bool]
"""Device, slice key, and whether the device exists in software only."""
ObservedKind = tuple[Where, int]
"""Where, and the batch size."""


@dataclass(kw_only=True, slots=True)
class DecayingHistogram:
    """Durations in ms; the latest weigh most (forward decay: new entries weigh more)."""

    buckets: dict[int, float] = field(default_factory=dict)
    weight: float = 0.0
    mean: float = 0.0
    count: int = 0
    scale: float = 1.0

    def add(self, ms: float, times: float = 1.0) -> None:
        """Add one duration with the weight of `times`."""
        ms = max(ms, 1e-3)
        self.scale *= math.exp(min(times / MEMORY, 20.0))
        weight = self.scale * times
        self.weight += weight
        self.mean += (ms - self.mean) * weight / self.weight
        bucket = math.floor(math.log(ms) / STEP)
        self.buckets[bucket] = self.buckets.get(bucket, 0.0) + weight
        if self.scale > LARGEST_SCALE:
            self._rescale()

    def quantile(self, part: float) -> float:
        """The duration that a part of the weight does not exceed, to within 4 %."""
        left = part * sum(self.buckets.values())
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 1e-9 * self.weight:
                return math.exp((bucket + 0.5) * STEP)
        raise ValueError("nothing was observed")

    def _rescale(self) -> None:
        kept = {bucket: weight for bucket, weight in self.buckets.items() if weight > FADED * self.weight}
        self.buckets = {bucket: weight / self.scale for bucket, weight in kept.items()}
        self.weight /= self.scale
        self.scale = 1.0


@dataclass(kw_only=True, slots=True)
class ObservedVersion:
    kinds: dict[ObservedKind, DecayingHistogram] = field(default_factory=dict)
    written: dict[ObservedKind, CurvePoint] = field(default_factory=dict)
    written_at: float = -math.inf
    is_new: bool = False
    """Whether there were batches since its curves were written."""


class CurveLearner:
    def __init__(self) -> None:
        self._versions: dict[str, ObservedVersion] = {}
        self._tokens = float(MOST_AT_ONCE)
        self._refilled_at = -math.inf

    def observe(self, ran: BatchesRan, where: Where, at: float) -> None:
        if not ran.ms or not 1 <= ran.batch <= MAX_BATCH or ran.count < len(ran.ms):
            return
        durations = ran.ms[: self._sampled(len(ran.ms), at)]
        if not durations:
            return
        known = self._versions.pop(ran.version, None) or ObservedVersion()
        self._versions[ran.version] = known  # the latest last
        if len(self._versions) > MOST_VERSIONS:
            del self._versions[next(iter(self._versions))]
        kind = (where, ran.batch)
        if kind not in known.kinds and len(known.kinds) >= MOST_KINDS:
            return
        histogram = known.kinds.setdefault(kind, DecayingHistogram())
        for ms in durations:
            histogram.add(ms, ran.count / len(durations))
        histogram.count += ran.count
        known.is_new = True

    def due(self, at: float, now: float, most: int = 8) -> dict[str, tuple[Curve, ...]]:
        """The new or changed curves of at most `most` versions, to be written. `now` is unix seconds."""
        found: dict[str, tuple[Curve, ...]] = {}
        for version, known in self._versions.items():
            if len(found) >= most:
                break
            if known.is_new and at - known.written_at >= WRITE_EVERY_S:
                known.is_new = False
                if curves := tuple(_changed_curves(known, now)):
                    found[version], known.written_at = curves, at
        return found

    def _sampled(self, wanted: int, at: float) -> int:
        """How many of so many durations to count: evenly through each second, since nodes report in turn."""
        passed = min(1.0, max(0.0, at - self._refilled_at))
        self._tokens = min(MOST_AT_ONCE, self._tokens + passed * MOST_PER_S)
        self._refilled_at = max(at, self._refilled_at)
        granted = min(wanted, int(self._tokens))
        self._tokens -= granted
        return granted


def _changed_curves(known: ObservedVersion, now: float) -> Iterator[Curve]:
    points: dict[Where, list[CurvePoint]] = {}
    for kind, histogram in known.kinds.items():
        if histogram.count < FLOOR:
            continue
        where, batch = kind
        point = point_of(histogram, batch, now)
        if has_changed(known.written.get(kind), point):
            known.written[kind] = point
            points.setdefault(where, []).append(point)
    for (gpu, cut, software), made in points.items():
        latest = sorted(made, key=lambda point: -point.samples)[:MAX_POINTS]
        ordered = tuple(sorted(latest, key=lambda point: point.batch))
        yield Curve(gpu=gpu, slice=cut, source=CurveSource.LEARNT, points=ordered, software=software)


def point_of(histogram: DecayingHistogram, batch: int, now: float) -> CurvePoint:
    """The point of a batch size; figures to three digits, so that noise is no change."""
    middle, high = histogram.quantile(0.5), histogram.quantile(0.95)
    return CurvePoint(
        batch=batch,
        throughput=float(f"{batch * 1000 / histogram.mean:.3g}"),
        p50_ms=float(f"{middle:.3g}"),
        p95_ms=float(f"{high:.3g}"),
        samples=histogram.count,
        at=now,
    )


def has_changed(written: CurvePoint | None, point: CurvePoint) -> bool:
    if written is None:
        return True
    pairs = ((written.throughput, point.throughput), (written.p95_ms, point.p95_ms))
    return any(abs(after - before) > MIN_CHANGE * before for before, after in pairs)
