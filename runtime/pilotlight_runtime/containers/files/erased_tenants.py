"""Files of tenants that were erased go from this node too: it asks gateways about the tenants whose files it keeps.

A node that was away asks when it is back, so that whoever erases a tenant need not reach all nodes.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import structlog

from pilotlight_core.bus import BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import MOST_ASKED, ErasedTenants, ErasedWanted
from pilotlight_runtime.containers.files.node_weights import NodeWeights
from pilotlight_runtime.containers.files.version_files import Asker

EVERY_S = 30.0
"""Between two questions."""
ASK_S = 5.0

log = structlog.get_logger(__name__)


class TenantFolders(Protocol):
    """A cache with a folder of each tenant in its own."""

    @property
    def folder(self) -> Path: ...

    def tenants(self) -> list[str]: ...

    def drop(self, tenant: str) -> int:
        """Forget what a tenant has, which the caller deletes; how much that was."""
        ...


class ErasedFiles:
    """Deletes what caches have of erased tenants."""

    def __init__(
        self, bus: Asker, caches: Sequence[TenantFolders], weights: NodeWeights, *, region: str, node: str
    ) -> None:
        self._bus = bus
        self._caches = caches
        self._weights = weights
        self._subject = subjects.erased(region, node)

    async def run(self) -> None:
        """Ask again and again."""
        while True:
            try:
                await self.delete_erased()
            except Exception:
                log.exception("files of erased tenants could not be looked for")
            await asyncio.sleep(EVERY_S)

    async def delete_erased(self) -> int:
        """Delete what is due, if a gateway answers; how many files that were."""
        tenants, gone = sorted({tenant for cache in self._caches for tenant in cache.tenants()}), 0
        for start in range(0, len(tenants), MOST_ASKED):
            asked = tuple(tenants[start : start + MOST_ASKED])
            try:
                answer = await self._bus.request(self._subject, ErasedWanted(tenants=asked), ASK_S)
            except BusError:
                return gone  # the next time
            erased = answer.tenants if isinstance(answer, ErasedTenants) else ()
            for tenant in set(erased) & set(asked):
                self._weights.forget(tenant)
                files = sum([await self._delete_from(cache, tenant) for cache in self._caches])
                log.info("files of an erased tenant were deleted", tenant=tenant, files=files)
                gone += files
        return gone

    @staticmethod
    async def _delete_from(cache: TenantFolders, tenant: str) -> int:
        """Delete what one cache has, which forgets it then: what cannot be deleted now is asked about again."""
        try:
            await asyncio.to_thread(_delete, cache.folder / tenant)
        except OSError as error:  # as where something of the tenant is written just now
            log.warning("files of an erased tenant could not be deleted yet", tenant=tenant, error=str(error))
            return 0
        return cache.drop(tenant)


def _delete(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
