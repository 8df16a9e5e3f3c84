"""Deletes runs whose command is gone: nobody renewed them until they ended."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from pilotlight_core.bus import BusError
from pilotlight_core.host.steady_clock import run_time
from pilotlight_core.model.errors import Conflict
from pilotlight_gateway.tenancy.registry_port import RegistryPort

LOOK_EVERY_S = 30.0

log = structlog.get_logger(__name__)


async def delete_ended_runs(registry: RegistryPort, at: float, tenant: str | None = None) -> int:
    """Delete the runs, of one tenant or of all, that have ended at the unix second `at`; how many. Raises BusError."""
    deleted = 0
    for record in [record for record in registry.iter_apps(tenant) if record.has_ended(at)]:
        with contextlib.suppress(Conflict):  # it was renewed, or another gateway deletes it too
            await registry.delete_app(record)
            deleted += 1
    return deleted


async def watch_ended_runs(registry: RegistryPort) -> None:
    """Delete runs that have ended, until cancelled."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            if deleted := await delete_ended_runs(registry, run_time()):
                log.info("runs that nobody renewed were deleted", runs=deleted)
        except BusError as error:
            log.warning("runs that have ended are deleted later", error=str(error))
