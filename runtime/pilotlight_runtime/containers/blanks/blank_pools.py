"""The blanks of a node: a pool for each of its base environments, since a blank is of one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pilotlight_runtime.containers.blanks.blank_pool import BlankDemand, BlankPool


class BlankPools:
    def __init__(self, pools: Iterable[BlankPool]) -> None:
        self._pools = {pool.starter.base.name: pool for pool in pools}

    @property
    def bases(self) -> tuple[str, ...]:
        """The names of the node's base environments, sorted."""
        return tuple(sorted(self._pools))

    @property
    def ready(self) -> dict[str, int]:
        """Blanks that are ready, by base environment."""
        return {base: pool.ready for base, pool in self._pools.items()}

    def of(self, base: str) -> BlankPool:
        """The pool of a base environment; raises KeyError if the node does not have it."""
        return self._pools[base]

    def wake(self) -> None:
        for pool in self._pools.values():
            pool.wake()

    async def run(self, demand: BlankDemand) -> None:
        """Keep all of them full until cancelled."""
        async with asyncio.TaskGroup() as group:
            for pool in self._pools.values():
                group.create_task(pool.run(demand))

    async def close(self) -> None:
        """End all blanks."""
        async with asyncio.TaskGroup() as group:
            for pool in self._pools.values():
                group.create_task(pool.close())
