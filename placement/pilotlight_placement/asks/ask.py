"""The request for one container: memory, types of GPU, service level, isolation, and location."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

from pilotlight_core.model.artifacts.artifact_entries import ArtifactInfo
from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.placing import MIN_THROUGHPUT, Measured, Purchase, Spread
from pilotlight_core.model.spec import DEFAULT_BASE, UNNAMED_CPU_MILLIS, FunctionSpec, Isolation, limit_of
from pilotlight_core.model.units import GpuAsk
from pilotlight_core.model.versions.manifest_codec import needs_of
from pilotlight_placement.asks.curves import Curves, Points, ThroughputPoint
from pilotlight_placement.asks.memory_need import memory_of
from pilotlight_placement.asks.resident_ask import ResidentAsks, resident_asks
from pilotlight_placement.hardware.catalogue import is_kind, standard

ANY_GPU = "ANY"
CPU = "CPU"
MIB = 2**20
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Ask:
    """The needs of one container. `gpu` empty means a CPU slot; memory is bytes, cpu thousandths of a core.

    `vram` is for the whole container, divided evenly among several GPUs; 0: unknown, so only whole devices hold it.
    `gpu` is in order of preference; with `by_cost` all its types are equal.
    """

    function: str = ""
    """The container's function, which counts for `spread` and `avoid`."""
    tenant: str = ""
    gpu: tuple[GpuAsk, ...] = ()
    vram: int = 0
    memory: int = 0
    """Of the host, as `cpu`; placement promises both, and no host more than it has."""
    cpu: int = 0
    isolation: Isolation = Isolation.SHARED
    by_cost: bool = False
    curves: Curves | None = None
    slo_ms: float | None = None
    spread: Spread | None = None
    avoid: tuple[str, ...] = ()
    """Functions (`tenant:app.function`) whose nodes are excluded, as are the nodes of those that avoid this one."""
    resident: ResidentAsks = ()
    """What it loads, which its node has preferably."""
    purchase: Purchase = Purchase.ANY
    regions: tuple[str, ...] = ()
    """Empty: any."""
    zones: tuple[str, ...] = ()
    neighbours: bool = False
    """Whether it may share a GPU with other tenants that agree too; shares of a GPU are not isolated."""
    media: bool = False
    """Whether it needs the video engines, which only one instance of a MIG device can have."""
    base: str = DEFAULT_BASE
    """The base environment that its node must have; "": any."""
    needs: tuple[str, ...] = ()
    """What the node's agent must be able to do."""
    shm: int = 0
    """Bytes of /dev/shm that the node must allow, `scratch` of /tmp; `pids` processes. 0: the default."""
    scratch: int = 0
    pids: int = 0
    slice: str = ""
    """The only allowed kind of slice, as device and key ("H100-80GB/3g"); "": any. For trials."""

    @classmethod
    def of(
        cls,
        spec: FunctionSpec,
        *,
        function: str = "",
        tenant: str = "",
        curves: Curves | None = None,
        base: str = DEFAULT_BASE,
        needs: tuple[str, ...] | None = None,
        artifacts: tuple[ArtifactInfo, ...] = (),
        environment: str = "",
    ) -> Ask:
        """The ask of a function's spec; `curves` replace the declared ones, `needs` what the spec itself needs.

        `artifacts` are those of its version, `environment` names what nodes build of its requirements.
        """
        placing = spec.placing
        return cls(
            function=function,
            tenant=tenant,
            gpu=spec.gpu,
            vram=memory_of(spec),
            memory=spec.memory,
            cpu=spec.cpu_millis,
            isolation=spec.isolation,
            by_cost=placing.by_cost,
            curves=curves or (curves_of(placing.measured) if placing.measured else None),
            slo_ms=spec.slo.p95_ms,
            spread=placing.spread,
            avoid=avoided_by(spec, tenant),
            resident=resident_asks(tenant, name=placing.weights, artifacts=artifacts, environment=environment),
            purchase=placing.purchase,
            regions=placing.regions,
            zones=placing.zones,
            neighbours=placing.neighbours,
            media=placing.media,
            base=base,
            needs=needs_of(spec) if needs is None else needs,
            shm=limit_of(spec.shm),
            scratch=limit_of(spec.scratch),
            pids=limit_of(spec.pids),
            slice=placing.slice,
        )

    @cached_property
    def _hash(self) -> int:
        return hash(tuple([getattr(self, each.name) for each in fields(self)]))

    def __hash__(self) -> int:
        """Worked out once: each decision looks an ask up several times, and it has two dozen fields."""
        return self._hash

    @cached_property
    def host(self) -> HostShare:
        """What it needs of its host."""
        return HostShare(cpu_millis=self.cpu, memory=self.memory)

    @property
    def choices(self) -> tuple[GpuAsk, ...]:
        return self.gpu or (GpuAsk(CPU),)

    def mib(self, count: int = 1) -> int:
        """MiB that each of `count` devices must have."""
        return -(-self.vram // (max(1, count) * MIB))

    def __str__(self) -> str:
        wanted = " or ".join(choice_text(choice) for choice in self.choices)
        vram = f" with {self.vram / GIB:.1f} GiB" if self.vram else ""
        # What a function without cpu= is promised goes without saying.
        cores = [f"{self.cpu / 1000:g} cores"] if self.cpu > UNNAMED_CPU_MILLIS else []
        memory = [f"{self.memory / GIB:.1f} GiB of host memory"] if self.memory else []
        base = f" in the base environment {self.base}" if self.base not in ("", DEFAULT_BASE) else ""
        return " and ".join([f"{wanted}{vram}", *cores, *memory]) + base


def avoided_by(spec: FunctionSpec, tenant: str) -> tuple[str, ...]:
    """The functions of its tenant that a function avoids, as `tenant:app.function`."""
    return tuple(f"{tenant}:{name}" for name in spec.placing.avoid)


def choice_text(choice: GpuAsk) -> str:
    """A choice in words: "H100:2", "any GPU", "a CPU slot"."""
    if choice.type == ANY_GPU:
        return "any GPU" if choice.count == 1 else f"any {choice.count} GPUs of a type"
    return "a CPU slot" if choice.type == CPU else str(choice)


@lru_cache(maxsize=4096)
def curves_of(measured: tuple[Measured, ...]) -> Curves:
    """The curves of measured points; equal points give the same object, so that asks stay equal."""
    return Curves(declared_points(measured))


def declared_points(measured: tuple[Measured, ...]) -> Points:
    points: dict[tuple[str, str], tuple[ThroughputPoint, ...]] = {}
    for each in measured:
        point = ThroughputPoint(batch=each.batch, throughput=max(each.throughput, MIN_THROUGHPUT), p95_ms=each.p95_ms)
        for key in _slices_meant(each):
            points[key] = (*points.get(key, ()), point)
    return points


def _slices_meant(each: Measured) -> list[tuple[str, str]]:
    """The slices of a measured point: "H100" means every device of that name, "3g.40gb" the profile "3g"."""
    devices = [device for name, device in standard().devices.items() if is_kind(each.gpu, name)]
    if not devices:
        return [(each.gpu, each.slice)]
    found = []
    for device in devices:
        keys = {cut.name: cut.profile.key for cut in device.cuts}
        found.append((device.name, keys.get(each.slice, each.slice)))
    return found
