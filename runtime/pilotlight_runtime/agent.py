"""The agent: what one node does, put together. Everything lives in one task group; `run` ends when it was told to.

The bus calls the handlers (`_on_run`, `_on_control`, `_on_command`) from its read loop; guests call back from the event
loop. Neither waits for anything, so a call costs no task and no timer.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import structlog

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.host.bus import NO_RESPONDERS, Bus, BusError
from pilotlight_core.host.signing import Verifier
from pilotlight_core.model import subjects
from pilotlight_core.model.messages import Bind, Cancel, Drain, Reconcile, Run, SliceReport, Stop, Window
from pilotlight_runtime.base import BaseEnvironment
from pilotlight_runtime.blank_pool import BlankPool
from pilotlight_runtime.bodies import Bodies
from pilotlight_runtime.containers import Containers
from pilotlight_runtime.credits import Credits
from pilotlight_runtime.devices.port import Devices
from pilotlight_runtime.file_cache import FileCache
from pilotlight_runtime.folders import NodeFolders
from pilotlight_runtime.log_shipper import LogShipper
from pilotlight_runtime.metering import Metering, boot_id
from pilotlight_runtime.node import Identity, Reporter
from pilotlight_runtime.origins import RETRY_S, Origins
from pilotlight_runtime.sandbox.port import Launcher
from pilotlight_runtime.services import Services
from pilotlight_runtime.slots import SlotTable
from pilotlight_runtime.stage import Stager
from pilotlight_runtime.stall import StallWatch
from pilotlight_runtime.usage_log import UsageLog

log = structlog.get_logger(__name__)

SWEEP_S = 0.02
BEAT_S = 1.0
DRAIN_S = 4.0
"""What running calls get when the agent is told to stop."""
END_S = 1.5
"""And then exit hooks, the last usage, the last log lines: each."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What an agent is made with."""

    identity: Identity
    bus: Bus
    blobs: BlobStore
    verifier: Verifier
    launcher: Launcher
    devices: Devices
    base: BaseEnvironment
    folders: NodeFolders
    blanks: int


class Agent:
    """One node."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._slices: tuple[SliceReport, ...] = tuple(parts.devices.inventory())
        self._stall = StallWatch(time.monotonic())
        self.up = asyncio.Event()
        """Set when it takes commands."""

    async def run(self, stop: asyncio.Event) -> None:
        """Be the node until `stop` is set; then end in order.

        Raises:
            BusError: if it cannot subscribe at the start.
        """
        usage_log = await asyncio.to_thread(UsageLog, self._parts.folders.usage, boot_id())
        if usage_log.cut_bytes:
            log.warning("the usage log was torn by a crash", cut_bytes=usage_log.cut_bytes)
        try:
            async with asyncio.TaskGroup() as group:
                standing = group.create_task(self._stand(usage_log, group))
                await stop.wait()
                await self._end()
                standing.cancel()
        finally:
            await asyncio.to_thread(usage_log.close)
