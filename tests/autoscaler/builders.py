"""Small makers of what controller tests are about."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.messages.agent_messages import (
    ContainerReport,
    ContainerState,
    Demand,
    NodeReport,
    SliceKind,
    SliceReport,
)
from pilotlight_core.model.spec import FunctionSpec, MethodSpec, VersionRecord


def spec(**options: Any) -> FunctionSpec:
    return FunctionSpec(
        name="greet", module="app", qualname="greet", methods=(MethodSpec(name="", attribute="greet"),), **options
    )


def record(version: str = "ver_1", **options: Any) -> VersionRecord:
    return VersionRecord(
        id=version,
        tenant="acme",
        app="hello",
        function="greet",
        number=1,
        manifest_sha256="00",
        spec=spec(**options),
        bundle_bytes=1,
        created_at=0.0,
    )


def container(
    name: str = "c1",
    version: str = "ver_1",
    *,
    running: int = 0,
    idle_s: float = 0.0,
    state: ContainerState = ContainerState.READY,
    slice_: str = "cpu-0",
) -> ContainerReport:
    return ContainerReport(
        id=name,
        version=version,
        tenant="acme",
        app="hello",
        function="greet",
        slice=slice_,
        state=state,
        slots=1,
        running=running,
        age_s=100.0,
        idle_s=idle_s,
    )


def report(*containers: ContainerReport, seq: int = 1, slots: int = 4, instance: str = "i1", **more: Any) -> NodeReport:
    used = {item.slice: item.id for item in containers}
    slices = tuple(
        SliceReport(
            id=f"cpu-{n}",
            kind=SliceKind.CPU,
            device="cpu",
            ppm=250_000,
            price="cpu",
            container=used.get(f"cpu-{n}", ""),
        )
        for n in range(slots)
    )
    return NodeReport(
        node="n1",
        instance=instance,
        seq=seq,
        region="local",
        zone="z",
        sandbox="bubblewrap",
        slices=slices,
        containers=containers,
        **more,
    )


def demand(version: str = "ver_1", *, queued: int = 0, running: int = 0, service_ms: float = 0.0) -> Demand:
    return Demand(
        version=version,
        tenant="acme",
        gateway="g",
        epoch=1,
        queued=queued,
        oldest_ms=10.0,
        running=running,
        arrivals=queued,
        service_ms=service_ms,
    )
