"""All devices of a node as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from pilotlight_core.model.devices import DeviceReport, GpuLayout, SliceName
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_core.model.messages.node_messages import SliceReport
from pilotlight_runtime.devices.device_port import DeviceAccess, Devices


class SeveralDevices:
    """The slices of all `kinds`, in that order."""

    def __init__(self, *kinds: Devices) -> None:
        """Raises ValueError for two slices of the same id."""
        self._kinds = kinds
        if len({part.id for part in self.inventory()}) < len(self.inventory()):
            raise ValueError("two slices of this node have the same id")

    def inventory(self) -> list[SliceReport]:
        return [part for kind in self._kinds for part in kind.inventory()]

    def part(self, name: SliceName) -> SliceReport | None:
        return next((part for kind in self._kinds if (part := kind.part(name)) is not None), None)

    def withdrawn(self) -> Mapping[str, str]:
        return {slice_id: why for kind in self._kinds for slice_id, why in kind.withdrawn().items()}

    def access(self, slice_id: str) -> DeviceAccess:
        name = SliceName.parse(slice_id)
        for kind in self._kinds:
            if kind.part(name) is not None:
                return kind.access(slice_id)
        raise LookupError(slice_id)

    def reports(self, on: Mapping[str, str], /) -> list[DeviceReport]:
        return [report for kind in self._kinds for report in kind.reports(on)]

    def command(self, command: DeviceCommand, busy: Collection[str], /) -> str:
        answers = [kind.command(command, busy) for kind in self._kinds]
        return next((answer for answer in answers if answer != "no_such_device"), "no_such_device")

    def layouts(self) -> Mapping[str, GpuLayout]:
        return {uuid: layout for kind in self._kinds for uuid, layout in kind.layouts().items()}

    async def restore(self, layouts: Mapping[str, GpuLayout], /) -> None:
        for kind in self._kinds:
            await kind.restore(layouts)

    async def watch(self, changed: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as group:
            for kind in self._kinds:
                group.create_task(kind.watch(changed))
