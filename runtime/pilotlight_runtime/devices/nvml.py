"""The GPUs of a node, each whole, as NVML shows them: found when the agent starts, looked at every few seconds.

A node without GPUs, or without the driver, is a node like any other. A driver that hangs is waited for so long and no
longer; until it answers again, its GPUs take no new container. What runs on a GPU is left alone, whatever is said here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import pynvml
import structlog

from pilotlight_core.model.messages import SliceKind, SliceReport
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.bounded import BoundedThread
from pilotlight_runtime.devices.driver import HostFolders, access_to, why_unusable
from pilotlight_runtime.devices.health import Reading, fault_of, read
from pilotlight_runtime.devices.libraries import Libraries, find_libraries
from pilotlight_runtime.devices.nvml_port import Nvml
from pilotlight_runtime.devices.port import Access
from pilotlight_runtime.devices.product import product_of
from pilotlight_runtime.devices.survey import Gpu, Survey, take_survey
from pilotlight_runtime.devices.xids import XidWatch

log = structlog.get_logger(__name__)

START_S = 30.0
"""A driver that nobody holds open initialises eight GPUs in some ten seconds."""
LOOK_S = 5.0
"""A look takes milliseconds."""
EVERY_S = 5.0
NOTHING_THERE = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
"""The errors of a node that has no GPU, or does not want to use it."""
EMPTY = Survey(driver="", gpus=(), unreadable=())


@dataclass(frozen=True, kw_only=True)
class GpuStatistics:
    """One GPU as it was at the last look."""

    uuid: str
    type: str
    memory: int
    reading: Reading
    xids: tuple[int, ...]
    """All errors since the agent has started, by number."""
    withdrawn: str
    """Why it takes no new container; "" if it does."""


class NvmlDevices:
    """An async context manager: it looks for GPUs when it is entered, and never fails for want of them."""

    def __init__(
        self,
        nvml: Nvml = pynvml,
        *,
        host: HostFolders | None = None,
        libraries: Callable[[], Libraries] = find_libraries,
        start_s: float = START_S,
        look_s: float = LOOK_S,
        every_s: float = EVERY_S,
    ) -> None:
        self.survey = EMPTY
        self.libraries = Libraries(libcuda=None, env={}, read_only=())
        self.absent = ""
        """Why nothing is known of any: the driver's words."""
        self.broken = False
        """There is a driver, but it does not work."""
        self.not_offered: dict[str, str] = {}
        """GPUs that are there and of no use, and why."""
        self._nvml = nvml
        self._host = host or HostFolders()
        self._find_libraries = libraries
        self._start_s, self._look_s, self._every_s = start_s, look_s, every_s
        self._thread = BoundedThread("nvml")
        self._is_open = False
        self._xids: XidWatch | None = None
        self._gpus: dict[str, Gpu] = {}
        self._slices: dict[str, SliceReport] = {}
        self._readings: dict[str, Reading] = {}
        self._faults: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        try:
            await self._thread.call(self._begin, self._start_s)
        except pynvml.NVMLError as error:
            self.absent, self.broken = str(error), error.value not in NOTHING_THERE
        except TimeoutError:
            self.absent, self.broken = f"the driver has not answered within {self._start_s:g} s", True
        else:
            self._is_open = True
            self._take(self.survey)
            await self.look()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_open:
            with contextlib.suppress(pynvml.NVMLError, TimeoutError):
                await self._thread.call(self._end, self._look_s)
        self._thread.close()

    # -- the port -----------------------------------------------------------------------------------------------

    def inventory(self) -> list[SliceReport]:
        return list(self._slices.values())

    def withdrawn(self) -> Mapping[str, str]:
        return self._faults

    def access(self, slice_id: str) -> Access:
        return access_to(self._gpus[slice_id], self.libraries, self._host)

    async def watch(self, changed: Callable[[], None]) -> None:
        """Says in the log what there is, and each change."""
        self._announce()
        while self._gpus:
            before = self._faults
            await asyncio.sleep(self._every_s)
            await self.look()
            if self._faults != before:
                _announce_change(before, self._faults)
                changed()

    # -- how they are -------------------------------------------------------------------------------------------

    async def look(self) -> bool:
        """Read all GPUs anew; whether `withdrawn` gives another answer than before."""
        before = self._faults
        try:
            self._readings = await self._thread.call(self._read_all, self._look_s)
        except TimeoutError:
            why = f"the driver has not answered for {self._look_s:g} s"
            self._readings = dict.fromkeys(self._gpus, Reading(error=why))
        faults = {uuid: fault_of(seen, self._xids_of(uuid)) for uuid, seen in self._readings.items()}
        self._faults = {uuid: why for uuid, why in faults.items() if why}
        return before != self._faults

    def statistics(self) -> tuple[GpuStatistics, ...]:
        """All GPUs that can be offered, as they were at the last look."""
        return tuple(
            GpuStatistics(
                uuid=uuid,
                type=part.gpu_type,
                memory=part.memory,
                reading=self._readings[uuid],
                xids=self._xids_of(uuid),
                withdrawn=self._faults.get(uuid, ""),
            )
            for uuid, part in self._slices.items()
        )

    @property
    def deaf(self) -> Mapping[str, str]:
        """The GPUs whose errors the driver does not report, and why; they are judged by what is read of them."""
        return self._xids.deaf if self._xids else {}

    def _xids_of(self, uuid: str) -> tuple[int, ...]:
        return self._xids.of(uuid) if self._xids else ()

    def _take(self, survey: Survey) -> None:
        """Sort out which of them can be offered."""
        for gpu in survey.gpus:
            if why := why_unusable(gpu, self.libraries, self._host):
                self.not_offered[gpu.uuid] = why
            else:
                self._gpus[gpu.uuid] = gpu
                self._slices[gpu.uuid] = slice_of(gpu)

    def _announce(self) -> None:
        if self._slices:
            types = [part.gpu_type for part in self._slices.values()]
            log.info("this node offers GPUs", driver=self.survey.driver, types=types)
        else:
            (log.warning if self.broken else log.info)("this node offers no GPUs", why=self.absent or "it has none")
        for uuid, why in self.not_offered.items():
            log.warning("a GPU is not offered", gpu=uuid, why=why)
        for why in self.survey.unreadable:
            log.warning("a GPU is not offered", why=why)
        _announce_change({}, self._faults)

    # -- in the thread ------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._nvml.nvmlInit()
        try:
            self.survey = take_survey(self._nvml)
            self.libraries = self._find_libraries() if self.survey.gpus else self.libraries
            self._xids = XidWatch(self._nvml, self.survey.gpus)
        except pynvml.NVMLError:
            self._nvml.nvmlShutdown()
            raise

    def _read_all(self) -> dict[str, Reading]:
        if self._xids:
            self._xids.gather()
        return {uuid: read(self._nvml, gpu) for uuid, gpu in self._gpus.items()}

    def _end(self) -> None:
        if self._xids:
            self._xids.close()
        self._nvml.nvmlShutdown()


def _announce_change(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    for uuid, why in now.items():
        if before.get(uuid) != why:
            log.warning("a GPU takes no new container", gpu=uuid, why=why)
    for uuid in before.keys() - now.keys():
        log.info("a GPU is offered again", gpu=uuid)


def slice_of(gpu: Gpu) -> SliceReport:
    """The whole of a GPU as a slice. Its id is the GPU's own, which it keeps in whichever slot it is."""
    product = product_of(gpu.name, gpu.memory)
    return SliceReport(
        id=gpu.uuid,
        kind=SliceKind.GPU,
        device=gpu.uuid,
        ppm=WHOLE_DEVICE,
        price=product.price,
        gpu_type=product.type,
        memory=gpu.memory,
    )
