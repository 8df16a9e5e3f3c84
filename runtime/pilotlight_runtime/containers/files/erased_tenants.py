"""Files of tenants that were erased go from this node too: it asks gateways about the tenants whose files it keeps.

A node that was away asks when it is back, so that whoever erases a tenant need not reach all nodes.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

import structlog

from pilotlight_core.bus import BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import MOST_ASKED, ErasedTenants, ErasedWanted
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.version_files import Asker
from pilotlight_runtime.environments.environment_cache import EnvironmentCache

EVERY_S = 30.0
"""Between two questions."""
ASK_S = 5.0

log = structlog.get_logger(__name__)


class ErasedFiles:
    """Deletes what a node's caches have of erased tenants."""

    def __init__(self, bus: Asker, cache: FileCache, environments: EnvironmentCache, *, region: str, node: str) -> None:
        self._bus = bus
        self._cache = cache
        self._environments = environments
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
        tenants, gone = sorted({*self._cache.tenants(), *self._environments.tenants()}), 0
        for start in range(0, len(tenants), MOST_ASKED):
            asked = tuple(tenants[start : start + MOST_ASKED])
            try:
                answer = await self._bus.request(self._subject, ErasedWanted(tenants=asked), ASK_S)
            except BusError:
                return gone  # the next time
            erased = answer.tenants if isinstance(answer, ErasedTenants) else ()
            for tenant in set(erased) & set(asked):
                files = self._cache.drop(tenant)
                await asyncio.to_thread(_delete, self._cache.folder / tenant)
                await asyncio.to_thread(_delete, self._environments.drop(tenant))
                log.info("files of an erased tenant were deleted", tenant=tenant, files=files)
                gone += files
        return gone


def _delete(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
