"""Gathers the facts of functions from where they are counted, and diagnoses them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from msgspec import UNSET

from pilotlight_core.model.limits import EffectiveLimits, Limits
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState, SliceReport
from pilotlight_core.model.messages.scheduling import GatewayLoad
from pilotlight_core.model.messages.seeing.tallies import JOBS, FunctionTally, HomeTally
from pilotlight_core.model.scaling.scale_bounds import bounds_of
from pilotlight_core.model.spec import FunctionSpec, VersionRecord
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_gateway.diagnosis.bottlenecks import Diagnosis, diagnose
from pilotlight_gateway.diagnosis.capacity_causes import MOST_PLACES
from pilotlight_gateway.diagnosis.diagnosis_window import (
    DiagnosisWindow,
    EngineFacts,
    FlowFacts,
    QuotaFacts,
    SliceSpeed,
)
from pilotlight_gateway.diagnosis.engine_facts import engine_facts
from pilotlight_gateway.diagnosis.window_facts import CountedWindow, ObservedFunction, diagnosis_window
from pilotlight_gateway.fleet.curve_trials import CurveService
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.tally.tally_window import FoundWindows, FunctionWindow
from pilotlight_gateway.tenancy.registry_port import RegistryPort

NO_RUNS = FunctionTally()
FUNCTIONS_AT_ONCE = 30
"""Of one answer about all functions of a tenant."""
CALL_LIMITS = ("requests_per_s", "concurrency", "cost_per_s", "tokens_per_s")
BURSTS = {"requests_per_s": "burst", "cost_per_s": "cost_burst", "tokens_per_s": "tokens_burst"}
"""Which follow their rates."""
CALL_FIELDS = (*CALL_LIMITS, *BURSTS.values())
"""What is of one function alone where it is set; other limits of a call are from all layers."""


class WindowSource(Protocol):
    """What was counted of calls."""

    async def window(self, function: str, minutes: int = 10) -> FunctionWindow: ...

    async def tenant(self, tenant: str, minutes: int = 10) -> FoundWindows: ...


@dataclass(frozen=True, kw_only=True)
class DiagnosedFunction:
    """A diagnosis, and the facts that it is of."""

    version: VersionRecord
    window: DiagnosisWindow
    found: Diagnosis
    silent: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FunctionDiagnoses:
    """Diagnoses functions of this platform. `clock`: monotonic seconds, `wall`: unix seconds."""

    counted: WindowSource
    placements: FleetPlacements
    registry: RegistryPort
    curves: CurveService
    loads: Callable[[], Sequence[GatewayLoad]]
    """The last ones of all gateways."""
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _busy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))

    @property
    def fleet(self) -> FleetView:
        """What nodes tell."""
        return self.placements.view

    async def of(self, version: VersionRecord, minutes: int, wanted_per_s: float | None = None) -> DiagnosedFunction:
        """One version over the last minutes.

        Raises:
            Unavailable: too much is asked at once.
        """
        name = f"{version.tenant}:{version.app}.{version.function}"
        window = await self.counted.window(name, minutes)
        places = await self.placements.free_places(version, MOST_PLACES)
        return await self._diagnosed(version, window, minutes, wanted_per_s, places)

    async def of_tenant(self, tenant: str, minutes: int) -> tuple[list[DiagnosedFunction], int]:
        """The deployed functions of a tenant that had calls, and how many are left out.

        Raises:
            Unavailable: too much is asked at once.
        """
        deployed = {
            f"{app.tenant}:{app.app}.{function}": version_id
            for app in self.registry.iter_apps(tenant)
            if not app.stopped
            for function, version_id in app.named_functions.items()
        }
        counted = await self.counted.tenant(tenant, minutes)
        names = [each.function for each in counted.windows if each.function in deployed]
        found = []
        for name in names[:FUNCTIONS_AT_ONCE]:
            version = self.registry.version(deployed[name])
            if version is not None:
                window = await self.counted.window(name, minutes)
                found.append(await self._diagnosed(version, window, minutes))
        return found, max(0, len(names) - FUNCTIONS_AT_ONCE)

    async def _diagnosed(
        self,
        version: VersionRecord,
        window: FunctionWindow,
        minutes: int,
        wanted_per_s: float | None = None,
        free_places: int | None = None,
    ) -> DiagnosedFunction:
        facts = replace(self.facts(version, window, minutes, wanted_per_s), free_places=free_places)
        async with self._busy:  # some milliseconds of a processor each, off the loop
            found = await asyncio.to_thread(diagnose, facts)
        return DiagnosedFunction(version=version, window=facts, found=found, silent=window.silent)

    def facts(
        self, version: VersionRecord, window: FunctionWindow, minutes: int, wanted_per_s: float | None = None
    ) -> DiagnosisWindow:
        """The facts of a version."""
        tally = window.by_version.get((version.id, ""), window.tally)
        home = window.homes.get(version.id, window.home if len(window.homes) < 2 else HomeTally())
        since = max(window.since_ns, tally.since_ns) / 1e9
        seconds = max(1.0, window.until_ns / 1e9 - since)
        jobs = window.by_version.get((version.id, JOBS), NO_RUNS)
        counted = CountedWindow(seconds=seconds, tally=tally, home=home, gateways=window.gateways, jobs=jobs)
        return diagnosis_window(counted, self._observed(version, tally.arrivals / seconds, minutes), wanted_per_s)

    def _observed(self, version: VersionRecord, rate: float, minutes: int) -> ObservedFunction:
        at, wall = self.clock(), self.wall()
        since, spec = at - 60.0 * minutes, version.spec
        name = f"{version.tenant}:{version.app}.{version.function}"
        limits, own = self.registry.limits(version.tenant, name), self.registry.own_limits(version.tenant)
        record = self.registry.scale_nowait(version.tenant, version.app, version.function)
        containers, of_tenant = self._containers(version, at)
        return ObservedFunction(
            ref=version.ref,
            owner=version.tenant,
            spec=spec,
            bounds=bounds_of(spec, record, wall),
            containers=containers,
            history=self.fleet.history.of(version.id, since),
            other_slices=self._other_slices(version, containers),
            owner_limit=_reached(limits, own, version.tenant, of_tenant, spec),
            quotas=_quotas(limits, own, version, rate),
            flows=self._flows(version.id),
            breaker=self.fleet.breaker_of(version.id, at),
            engine=self._engine(version, since),
        )

    def _containers(
        self, version: VersionRecord, at: float
    ) -> tuple[list[tuple[ContainerReport, SliceReport | None]], int]:
        """Those of the version with their slices, and how many its tenant has in all."""
        found: list[tuple[ContainerReport, SliceReport | None]] = []
        count = 0
        for report in self.fleet.reports(at):
            for container in report.containers:
                if container.state is ContainerState.GONE or container.tenant != version.tenant:
                    continue
                count += 1
                if container.version == version.id:
                    cut = next((each for each in report.slices if each.id == container.slice), None)
                    found.append((container, cut))
        return found, count

    def _other_slices(
        self, version: VersionRecord, containers: Sequence[tuple[ContainerReport, SliceReport | None]]
    ) -> tuple[SliceSpeed, ...]:
        """Kinds of slices on which a curve says how fast it is, but for the one that it is on."""
        here = {_kind_of(cut) for _, cut in containers if cut is not None}
        found = {}
        for curve in self.curves.known(version):
            point = min(curve.points, key=lambda each: each.batch, default=None)
            if point is not None and (curve.gpu, curve.slice) not in here:
                what = f"{curve.slice} of {curve.gpu}" if curve.slice != "whole" else f"a whole {curve.gpu}"
                found[curve.gpu, curve.slice] = SliceSpeed(what=what, batch=point.batch, ms=point.p95_ms)
        return tuple(found.values())

    def _flows(self, version: str) -> tuple[FlowFacts, ...]:
        """Who is slowed down at its home, and by whom."""
        for load in self.loads():
            for flow in load.slow:
                if flow.version == version and flow.neighbour:
                    return (
                        FlowFacts(
                            tenant=flow.tenant, slowdown=flow.slowdown, held_part=flow.held_part, mean_ms=flow.mean_ms
                        ),
                        FlowFacts(tenant=flow.neighbour, slowdown=1.0, held_part=flow.neighbour_part),
                    )
        return ()

    def _engine(self, version: VersionRecord, since: float) -> EngineFacts | None:
        if version.spec.engine is UNSET:
            return None
        return engine_facts(
            self.fleet.history.engines(version.id, since),
            most=version.spec.engine.max_sequences,
            first_level_ms=version.spec.slo.ttft_ms,
            gap_level_ms=version.spec.slo.itl_ms,
        )


def _kind_of(cut: SliceReport) -> tuple[str, str]:
    """As curves name it, as far as a report tells: a part of a device is told by its share of it."""
    if cut.ppm >= WHOLE_DEVICE:
        return (cut.gpu_type, "whole")
    return (cut.gpu_type, cut.id.rpartition(":")[2].partition("@")[0])


def _reached(
    limits: EffectiveLimits, own: Limits, tenant: str, containers: int, spec: FunctionSpec
) -> QuotaFacts | None:
    """The owner's limit that allows no further container."""
    held = {"containers": containers, "gpus": containers * spec.gpus}
    for name, count in held.items():
        most = getattr(limits.tenant, name)
        if most is not None and count and count >= most:
            return QuotaFacts(limit=name, tenant=tenant, allowed=float(most), beside=_beside(own, name))
    return None


def _quotas(limits: EffectiveLimits, own: Limits, version: VersionRecord, rate: float) -> tuple[QuotaFacts, ...]:
    """Limits of calls that may be reached at such a rate of arrivals; a rate that is, goes before all others."""
    found = []
    of_function = f"{version.app}.{version.function}"
    for layer, beside, function in ((limits.tenant, own, ""), (limits.function, limits.function, of_function)):
        for name in CALL_LIMITS:
            allowed = getattr(layer, name)
            if allowed is not None and not (name == "requests_per_s" and rate < 0.8 * allowed):
                text = _beside(beside, name, CALL_FIELDS if function else None)
                found.append(
                    QuotaFacts(
                        limit=name, tenant=version.tenant, allowed=float(allowed), function=function, beside=text
                    )
                )
    rates = [each for each in found if each.limit == "requests_per_s"]
    return tuple(rates or found)


def _beside(limits: Limits, but: str, fields: Sequence[str] | None = None) -> str:
    """What is set of these limits beside one, since a word about limits replaces all of them."""
    burst = BURSTS.get(but, "")
    set_ones = {name: getattr(limits, name) for name in fields or limits.__struct_fields__}
    return " ".join(
        f"{name}={value:g}" for name, value in set_ones.items() if value is not None and name != but and name != burst
    )
