"""CPU slots: the node's processors, shared out evenly."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping

from pilotlight_core.model.devices import DeviceReport, GpuLayout, SliceName, cpu_price
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.units import WHOLE_DEVICE, split_evenly
from pilotlight_runtime.devices.device_port import DeviceAccess


def usable_cores() -> int:
    return len(os.sched_getaffinity(0))


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class CpuDevices:
    """`slots` containers without a GPU, all on the device "cpu": each pays for its part of the host's cores."""

    def __init__(self, slots: int, memory: int | None = None, cores: int | None = None) -> None:
        share, price = (memory or memory_bytes()) // max(1, slots), cpu_price(cores or usable_cores())
        self._slices = {
            f"cpu-{n}": SliceReport(id=f"cpu-{n}", kind=SliceKind.CPU, device="cpu", ppm=ppm, price=price, memory=share)
            for n, ppm in enumerate(split_evenly(WHOLE_DEVICE, slots) if slots else ())
        }

    def inventory(self) -> list[SliceReport]:
        return list(self._slices.values())

    def part(self, name: SliceName) -> SliceReport | None:
        return self._slices.get(str(name))

    def withdrawn(self) -> Mapping[str, str]:
        return {}

    def access(self, slice_id: str) -> DeviceAccess:
        if slice_id not in self._slices:
            raise KeyError(slice_id)
        return DeviceAccess()

    def reports(self, _: Mapping[str, str], /) -> list[DeviceReport]:
        return []

    def command(self, _: DeviceCommand, __: Collection[str], /) -> str:
        return "no_such_device"

    def layouts(self) -> Mapping[str, GpuLayout]:
        return {}

    async def restore(self, _: Mapping[str, GpuLayout], /) -> None:
        """A processor is not cut."""

    async def watch(self, changed: Callable[[], None]) -> None:
        """A processor does not fail by itself."""
