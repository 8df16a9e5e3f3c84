"""The blanks of a node: a pool for each of its base environments, since a blank is of one, and those on GPUs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pilotlight_core.model.messages.node_messages import BlankSize, SliceKind, SliceReport
from pilotlight_runtime.containers.blanks.blank import Blank
from pilotlight_runtime.containers.blanks.blank_pool import BlankDemand, BlankPool
from pilotlight_runtime.containers.blanks.slice_blanks import SliceBlanks
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits


class BlankPools:
    def __init__(self, pools: Iterable[BlankPool], on_gpus: SliceBlanks | None = None) -> None:
        self._pools = {pool.starter.base.name: pool for pool in pools}
        self._on_gpus = on_gpus
        self.sizes: tuple[BlankSize, ...] | None = None
        """What was commanded last; None: nothing yet."""

    @property
    def bases(self) -> tuple[str, ...]:
        """The names of the node's base environments, sorted."""
        return tuple(sorted(self._pools))

    @property
    def ready(self) -> dict[str, int]:
        """Blanks that are ready, by base environment, those on GPUs too."""
        counts = Counter({base: pool.ready for base, pool in self._pools.items()})
        counts.update(self.on_slices.values())
        return dict(counts)

    @property
    def on_slices(self) -> Mapping[str, str]:
        """Slice of a GPU -> base environment of the blank that is ready there."""
        return self._on_gpus.ready if self._on_gpus is not None else {}

    def missing(self, demand: BlankDemand) -> int:
        """How many there should be that are not ready."""
        on_gpus = self._on_gpus.missing if self._on_gpus is not None else 0
        return sum(pool.missing(demand) for pool in self._pools.values()) + on_gpus

    def of(self, base: str) -> BlankPool:
        """The pool of a base environment; raises KeyError if the node does not have it."""
        return self._pools[base]

    def resize(self, sizes: Sequence[BlankSize]) -> None:
        """Keep so many from now on, and none of what is not named."""
        self.sizes = tuple(sizes)
        for base, pool in self._pools.items():
            pool.resize(sum(size.count for size in sizes if size.base == base and not size.gpu_type))
        if self._on_gpus is not None:
            self._on_gpus.resize(sizes)

    async def take(self, base: str, part: SliceReport, access: DeviceAccess, limits: ResourceLimits) -> Blank:
        """The blank of the container's slice, or one that any CPU slot may have; else a new sandbox.

        Raises:
            KeyError: the node does not have the base environment.
            SandboxError: none could be started.
        """
        pool = self.of(base)
        if part.kind is SliceKind.CPU:
            return await pool.take(limits)
        there = self._on_gpus.take(base, part, access, limits) if self._on_gpus is not None else None
        return there or await pool.starter.start(limits, access)

    def wake(self) -> None:
        for pool in self._pools.values():
            pool.wake()
        if self._on_gpus is not None:
            self._on_gpus.wake()

    async def run(self, demand: BlankDemand) -> None:
        """Keep all of them full until cancelled."""
        async with asyncio.TaskGroup() as group:
            for pool in self._pools.values():
                group.create_task(pool.run(demand))
            if self._on_gpus is not None:
                group.create_task(self._on_gpus.run(demand))

    async def close(self) -> None:
        """End all blanks."""
        async with asyncio.TaskGroup() as group:
            for pool in self._pools.values():
                group.create_task(pool.close())
            if self._on_gpus is not None:
                group.create_task(self._on_gpus.close())
