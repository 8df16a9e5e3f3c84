"""How the GPUs of a node are cut, kept on the bus, since MIG instances do not outlive a restart of the host.

While the host runs, only the driver decides: an agent reads the record only for a GPU without instances. Nothing waits
for the record.
"""

from __future__ import annotations

import asyncio
import time

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model.devices import GpuLayout, LayoutRecord
from pilotlight_core.model.subjects import LAYOUT_BUCKET
from pilotlight_runtime.devices.device_port import Devices

log = structlog.get_logger(__name__)

AGAIN_S = 5.0


class LayoutKeeper:
    """`changed` is called when GPUs may have been cut."""

    def __init__(self, bus: Bus, node: str, devices: Devices) -> None:
        self._kv = bus.kv(LAYOUT_BUCKET)
        self._node = node
        self._devices = devices
        self._kept: dict[str, GpuLayout] = {}
        self._news = asyncio.Event()

    def changed(self) -> None:
        self._news.set()

    async def restore(self) -> None:
        """Cut GPUs as they were, before anything is bound."""
        if not self._devices.layouts():
            return
        try:
            entry = await self._kv.get(self._node)
            record = None if entry is None else msgspec.msgpack.decode(entry.value, type=LayoutRecord)
        except (BusError, msgspec.DecodeError) as error:
            log.warning("how the GPUs were cut is not known", error=str(error))
            return
        if record is not None:
            await self._devices.restore(record.devices)
            self._kept = record.devices

    async def run(self) -> None:
        """Store each change until cancelled."""
        self._news.set()
        while True:
            await self._news.wait()
            self._news.clear()
            layouts = {**self._kept, **self._devices.layouts()}
            # The entry of a missing GPU stays: it may come back with the next start.
            if layouts == self._kept:
                continue
            record = LayoutRecord(devices=layouts, at=time.time())
            try:
                await self._kv.put(self._node, msgspec.msgpack.encode(record))
                self._kept = layouts
            except BusError as error:
                log.warning("how the GPUs are cut could not be written down", error=str(error))
                await asyncio.sleep(AGAIN_S)
                self._news.set()
