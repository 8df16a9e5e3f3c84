"""The providers' sides of pools that are open, each by the terms that its pool has now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from pilotlight_autoscaler.pools.node_pool import NodePool
from pilotlight_core.model.records.pools import PoolRecord

OpenPool = Callable[[PoolRecord], NodePool]


def no_pool(record: PoolRecord) -> NodePool:
    """A process that has no way to any provider."""
    raise ValueError(f"nobody here launches machines for the pool {record.name}")


class OpenPools:
    def __init__(self, open_pool: OpenPool) -> None:
        self._open_pool = open_pool
        self._open: dict[str, tuple[str, NodePool]] = {}
        """By name, with what each was opened with."""

    def pool(self, record: PoolRecord) -> NodePool:
        """A pool's, opened if it is not.

        Raises:
            ValueError: it cannot be; says why.
        """
        if record.name not in self._open:
            self._open[record.name] = _made_of(record), self._open_pool(record)
        return self._open[record.name][1]

    def forget(self, name: str) -> None:
        """Open it anew the next time: what was heard and not confirmed is heard again."""
        self._open.pop(name, None)

    def close_others(self, records: Mapping[str, PoolRecord], tasks: asyncio.TaskGroup) -> None:
        """Close those whose pools are gone, or have other terms now."""
        for name, (made_of, pool) in list(self._open.items()):
            if name not in records or _made_of(records[name]) != made_of:
                del self._open[name]
                tasks.create_task(_close(pool))

    async def aclose(self) -> None:
        for _, pool in self._open.values():
            await _close(pool)
        self._open.clear()


def _made_of(record: PoolRecord) -> str:
    """One that was removed and made again has other machines: those with its new id."""
    return f"{record.id}:{record.terms.digest}"


async def _close(pool: NodePool) -> None:
    with suppress(Exception):  # it is not needed any more
        await pool.aclose()
