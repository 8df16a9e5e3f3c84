"""The part of a node's memory for what may be needed again soon that weights take."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.model.scaling.warm_things import WarmKind, WarmThing
from pilotlight_runtime.containers.warm_memory import WarmMemory

LIKELIHOOD = 0.5
"""That weights which are used now are loaded again within a minute: as containers come and go, every other one."""


class WeightsBudget:
    """The `MemoryBudget` of `NodeWeights`, which parked containers share. Names are `tenant:digest`."""

    def __init__(self, memory: WarmMemory, clock: Callable[[], float]) -> None:
        self._memory = memory
        self._clock = clock

    def take(self, name: str, size: int, load_s: float, evict: Callable[[], None]) -> bool:
        return self._memory.take(
            WarmThing(
                kind=WarmKind.CACHED,
                name=name,
                tenant=name.partition(":")[0],
                size=size,
                load_s=load_s,
                likelihood=LIKELIHOOD,
                since=self._clock(),
                evict=evict,
            )
        )

    def touch(self, name: str) -> None:
        self._memory.touch(WarmKind.CACHED, name, LIKELIHOOD, self._clock())

    def release(self, name: str) -> None:
        self._memory.release(WarmKind.CACHED, name)
