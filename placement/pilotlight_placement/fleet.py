"""The fleet as placement sees it: nodes and their slices, free or taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pilotlight_core.model.messages import SliceKind, SliceReport
from pilotlight_core.model.spec import FunctionSpec, Isolation
from pilotlight_core.model.units import GpuAsk

ANY_GPU = "ANY"
CPU = "CPU"


@dataclass(frozen=True, kw_only=True)
class Node:
    """One host: its slices in the order it reported them."""

    name: str
    slices: tuple[SliceReport, ...]
    draining: bool = False

    @property
    def host_memory(self) -> int:
        """Bytes of the host's memory, which its CPU slots share; 0 if it offers none and does not say."""
        return sum(part.memory for part in self.slices if part.kind is SliceKind.CPU)


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What one container needs of a slice. `gpu` empty means a CPU slot; `vram` is bytes."""

    gpu: tuple[GpuAsk, ...] = ()
    vram: int = 0
    memory: int = 0
    isolation: Isolation = Isolation.SHARED

    @classmethod
    def of(cls, spec: FunctionSpec) -> Ask:
        """The ask that a function's spec makes."""
        return cls(gpu=spec.gpu, vram=spec.vram or 0, memory=spec.memory, isolation=spec.isolation)

    @property
    def choices(self) -> tuple[GpuAsk, ...]:
        """Acceptable devices in order of preference."""
        return self.gpu or (GpuAsk(CPU),)

    def __str__(self) -> str:
        wanted = " or ".join("a CPU slot" if choice.type == CPU else str(choice) for choice in self.choices)
        vram = f" with {self.vram / 2**30:.1f} GiB" if self.vram else ""
        return f"{wanted}{vram} and {self.memory / 2**30:.1f} GiB of host memory" if self.memory else f"{wanted}{vram}"


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A slice that was chosen."""

    node: str
    slice: str


@dataclass(frozen=True, kw_only=True)
class NoFit:
    """Why nothing was chosen. `never`: no slice of this fleet could hold it, even if all were free."""

    reason: str
    never: bool


class Fleet:
    """Nodes in a fixed order, with slices that can be taken while a plan is made."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self._taken: set[tuple[str, str]] = set()

    def slices(self) -> Iterator[tuple[Node, SliceReport]]:
        """Every slice of the nodes that take containers."""
        for node in self.nodes:
            if not node.draining:
                for part in node.slices:
                    yield node, part

    def is_free(self, node: Node, part: SliceReport) -> bool:
        return not part.container and (node.name, part.id) not in self._taken

    def take(self, placement: Placement) -> None:
        """Mark a slice as used by this plan."""
        self._taken.add((placement.node, placement.slice))

    def describe(self) -> str:
        """The fleet's slices in words, by kind and type: "4 CPU slots, 1 H100"."""
        counts: dict[str, int] = {}
        for _, part in self.slices():
            name = "CPU slot" if part.kind is SliceKind.CPU else part.gpu_type or part.kind.value
            counts[name] = counts.get(name, 0) + 1
        return ", ".join(f"{n} {name}{'s' * (n > 1)}" for name, n in counts.items()) or "nothing"
