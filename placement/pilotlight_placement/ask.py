"""What one container asks of the fleet: memory, types of GPU, service level, isolation, and where it may be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pilotlight_core.model.spec import FunctionSpec, Isolation
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.curves import Curves

ANY_GPU = "ANY"
CPU = "CPU"
MIB = 2**20
GIB = 2**30


class Over(StrEnum):
    """What containers are spread over."""

    NODE = "node"
    ZONE = "zone"


class Purchase(StrEnum):
    """How the node was bought."""

    ANY = "any"
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The domain with fewest containers of the function goes first; `most` is a hard limit in one domain."""

    over: Over
    most: int | None = None


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What one container needs. `gpu` empty means a CPU slot; memory is bytes.

    `vram` is for the container in all: several GPUs share it evenly. 0 means that nobody knows, so only whole devices
    hold it. `gpu` is in order of preference; with `by_cost` all its types are as good, and cost decides.
    """

    function: str = ""
    """Whose container: counts for `spread` and `avoid`."""
    tenant: str = ""
    gpu: tuple[GpuAsk, ...] = ()
    vram: int = 0
    memory: int = 0
    isolation: Isolation = Isolation.SHARED
    by_cost: bool = False
    curves: Curves | None = None
    slo_ms: float | None = None
    spread: Spread | None = None
    avoid: tuple[str, ...] = ()
    """Functions whose nodes are not to be used."""
    weights: str = ""
    """What should be resident on a node already: an id of weights; "" is none."""
    purchase: Purchase = Purchase.ANY
    regions: tuple[str, ...] = ()
    """Empty: any."""
    zones: tuple[str, ...] = ()
    neighbours: bool = False
    """Whether other tenants may share its GPU (a share has no wall: only for those who agree)."""
    media: bool = False
    """Whether it needs the video engines, which one instance of a MIG device can have."""

    @classmethod
    def of(cls, spec: FunctionSpec, *, function: str = "", tenant: str = "") -> Ask:
        """The ask that a function's spec makes."""
        return cls(
            function=function,
            tenant=tenant,
            gpu=spec.gpu,
            vram=spec.vram or 0,
            memory=spec.memory,
            isolation=spec.isolation,
            slo_ms=spec.slo.p95_ms,
        )

    @property
    def choices(self) -> tuple[GpuAsk, ...]:
        """Acceptable devices in order of preference."""
        return self.gpu or (GpuAsk(CPU),)

    def mib(self, count: int = 1) -> int:
        """MiB that each of `count` devices must have."""
        return -(-self.vram // (count * MIB))

    def __str__(self) -> str:
        wanted = " or ".join("a CPU slot" if choice.type == CPU else str(choice) for choice in self.choices)
        vram = f" with {self.vram / GIB:.1f} GiB" if self.vram else ""
        return f"{wanted}{vram} and {self.memory / GIB:.1f} GiB of host memory" if self.memory else f"{wanted}{vram}"
