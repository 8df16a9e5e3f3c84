"""Throughput curves of versions, and specs of the trials that measure them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from pilotlight_core.model.api.curve_api import (
    Curve,
    CurvePoint,
    CurveRequest,
    CurveSource,
    CurvesRecord,
    MethodLoad,
    TrialRequest,
)
from pilotlight_core.model.spec import SLO, FunctionSpec, VersionRecord
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_placement.asks.ask import declared_points
from pilotlight_placement.asks.curve_book import CurveBook
from pilotlight_placement.asks.options import pin


class CurveService:
    """Reads and stores throughput curves."""

    def __init__(self, registry: RegistryPort) -> None:
        self.book = CurveBook(registry)
        self._registry = registry

    def known(self, version: VersionRecord) -> tuple[Curve, ...]:
        """The stored curves, then those that the function declares."""
        record = self._registry.curves(version.id)
        return (*(record.curves if record is not None else ()), *declared(version.spec))

    async def keep(self, version: VersionRecord, given: CurveRequest, *, software: bool, at: float) -> CurvesRecord:
        """Store points measured at the unix second `at`, over earlier ones of their batch sizes.

        Raises:
            Conflict: other writers keep changing the record.
        """
        points = tuple(msgspec.structs.replace(point, at=at) for point in given.points)
        curve = Curve(gpu=given.gpu, slice=given.slice, source=CurveSource.MEASURED, points=points, software=software)

        def change(record: CurvesRecord | None) -> CurvesRecord:
            return (record or CurvesRecord(version=version.id)).with_curves((curve,))

        return await self._registry.change_curves(version.id, change)


def declared(spec: FunctionSpec) -> tuple[Curve, ...]:
    """The curves of the function's own `measured=`."""
    return tuple(
        Curve(
            gpu=gpu,
            slice=cut,
            source=CurveSource.DECLARED,
            points=tuple(
                CurvePoint(batch=p.batch, throughput=p.throughput, p50_ms=0.0, p95_ms=p.p95_ms, samples=0)
                for p in points
            ),
        )
        for (gpu, cut), points in declared_points(spec.placing.measured).items()
    )


def loads_of(spec: FunctionSpec) -> tuple[MethodLoad, ...]:
    """The inputs that a container processes at once, by method; what an engine takes beyond them waits in it."""
    at_once = spec.max_inputs if spec.engine is UNSET else min(spec.max_inputs, spec.engine.max_sequences)
    return tuple(
        MethodLoad(
            method=method.name,
            most=method.batching.max_batch_size if method.batching else at_once,
            batches=method.batching is not None,
        )
        for method in spec.methods
    )


def pinned(spec: FunctionSpec, asked: TrialRequest) -> FunctionSpec:
    """The spec of a trial: one container on the given kind of slice, without SLO and spread."""
    placing = msgspec.structs.replace(
        spec.placing, slice=pin(asked.gpu, asked.slice), spread=None, avoid=(), measured=()
    )
    return msgspec.structs.replace(
        spec, placing=placing, min_containers=0, max_containers=1, buffer_containers=0, slo=SLO(), warm=UNSET
    )
