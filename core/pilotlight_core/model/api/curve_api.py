"""Throughput curves in the registry, beside their version, and in the HTTP API.

A point is T(device type, slice, batch) -> (throughput, p50, p95). The batch size is what a container executes at once:
the items of a batch, or the concurrent calls of a function without batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import NAME
from pilotlight_core.model.placing import MIN_THROUGHPUT

CPU_TYPE, CPU_SLICE = "CPU", "slot"
"""The device and slice of a CPU slot in a curve."""
TARGET_UTILISATION = 0.8
"""Part of the containers' capacity in use at which another one is wanted."""
MAX_BATCH = 65_536
MAX_POINTS = 32
"""Batch sizes of one curve; the oldest measurements are removed first."""
MAX_CURVES = 64
"""Of one version: a dozen kinds of GPU with their slices, measured and learnt."""
MAX_MS = 1e9
MAX_THROUGHPUT = 1e12


class CurveSource(StrEnum):
    MEASURED = "measured"  # by `pilotlight profile`
    LEARNT = "learnt"  # from calls in use
    DECLARED = "declared"  # by the function's own measured=


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One batch size. p50 and p95 are of one batch on the slice, in ms (0: unknown).

    Throughput is items per second: as they came back to whoever measured, or, learnt in use, as the agent saw them.
    """

    batch: int
    throughput: float
    p50_ms: float
    p95_ms: float
    samples: int
    """Batches behind it; 0: unknown."""
    at: float = 0.0


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The points of one kind of slice, smallest batch first.

    `gpu` is the device as agents report it ("H100-80GB"), or "CPU"; `slice` is "whole", "whole:4", a MIG profile
    ("3g"), a share in thousandths ("share:250"), or "slot".
    """

    gpu: str
    slice: str
    source: CurveSource
    points: tuple[CurvePoint, ...]
    software: bool = False
    """Whether the GPU existed in software only: its figures are those of the host's processors."""

    @property
    def key(self) -> tuple[str, str, CurveSource]:
        return (self.gpu, self.slice, self.source)


class CurvesRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The registry's record of a version's curves, measured and learnt. Key: `curves.{version_id}`."""

    version: str
    curves: tuple[Curve, ...] = ()

    def with_curves(self, curves: Iterable[Curve]) -> CurvesRecord:
        """The record with these points replacing those of the same slice, source and batch; within the bounds."""
        known = {curve.key: curve for curve in self.curves}
        for curve in curves:
            known[curve.key] = merged(known.get(curve.key), curve)
        kept = sorted(known.values(), key=_latest, reverse=True)[:MAX_CURVES]
        return CurvesRecord(version=self.version, curves=tuple(sorted(kept, key=lambda curve: curve.key)))


def merged(known: Curve | None, curve: Curve) -> Curve:
    """`curve`, with the known points of other batch sizes."""
    before = known.points if known is not None and known.software is curve.software else ()
    points = {point.batch: point for point in (*before, *curve.points)}
    latest = sorted(points.values(), key=lambda point: (-point.at, point.batch))[:MAX_POINTS]
    return msgspec.structs.replace(curve, points=tuple(sorted(latest, key=lambda point: point.batch)))


def _latest(curve: Curve) -> float:
    return max((point.at for point in curve.points), default=0.0)


class CurveRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/functions/{ref}/curves`: measurements of one kind of slice."""

    gpu: str
    slice: str
    points: tuple[CurvePoint, ...]


class SliceKindInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of slice in the fleet that the function could run on."""

    gpu: str
    slice: str
    what: str
    """In words: "3g.40gb of an H100-80GB"."""
    software: bool = False


class MethodLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a container executes of one method at once: a batch, or concurrent calls."""

    method: str
    most: int
    batches: bool


class FunctionCurves(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/functions/{ref}/curves`: the curves of a version, and the slices on which it could be measured."""

    version: str
    """`app.function@v7`."""
    version_id: str
    curves: tuple[Curve, ...]
    slices: tuple[SliceKindInfo, ...]
    methods: tuple[MethodLoad, ...]


class TrialRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/functions/{ref}/trials`: run a version on one kind of slice."""

    gpu: str
    slice: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a version that runs only on the requested slice, in one container, without being deployed.

    Its container starts with the first call and stops a second after the last one.
    """

    ref: str
    """Its address: `app.function@ver_…`."""
    version_id: str


def check_slice(gpu: str, slice_: str) -> None:
    """Refuse names that no kind of slice can have.

    Raises:
        BadInput: naming the field.
    """
    if not NAME.fullmatch(gpu):
        raise BadInput('gpu: expected a device as agents report it, such as "H100-80GB", or "CPU".', field="gpu")
    if not 0 < len(slice_) <= 63 or not slice_.isascii() or not slice_.isprintable():
        raise BadInput('slice: expected "whole", "whole:4", a profile such as "3g", or "slot".', field="slice")


def check_points(points: tuple[CurvePoint, ...]) -> None:
    """Refuse points that no measurement can give.

    Raises:
        BadInput: saying what is wrong.
    """
    if not 0 < len(points) <= MAX_POINTS or len({point.batch for point in points}) != len(points):
        raise BadInput(f"points: expected 1 to {MAX_POINTS}, each of another batch size.", field="points")
    for point in points:
        in_range = (
            1 <= point.batch <= MAX_BATCH
            and 0 <= point.samples <= 2**53
            and all(math.isfinite(ms) and 0 < ms <= MAX_MS for ms in (point.p50_ms, point.p95_ms))
            and math.isfinite(point.throughput)
            and MIN_THROUGHPUT <= point.throughput <= MAX_THROUGHPUT
            and point.p50_ms <= point.p95_ms
        )
        if not in_range:
            raise BadInput(
                f"points: batch {point.batch}: expected throughput of at least {MIN_THROUGHPUT:g} per second, "
                "p50_ms and p95_ms above 0, and p50 not above p95.",
                field="points",
            )
