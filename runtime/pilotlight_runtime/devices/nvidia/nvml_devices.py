"""The GPUs of a node in NVML: found when the agent starts, read every few seconds, cut as commanded.

A node without GPUs, or without the driver, is a node like any other. While the driver hangs, its GPUs take no new
container; running containers are left alone. How a GPU is cut is always read from the driver, also after a change that
failed half-way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

import msgspec
import pynvml
import structlog

from pilotlight_core.model.devices import DeviceReport, GpuLayout, MigMode, SliceName
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_core.model.messages.node_messages import SliceReport
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.devices.nvidia.bounded_thread import BoundedThread
from pilotlight_runtime.devices.nvidia.driver_libraries import Libraries, find_libraries
from pilotlight_runtime.devices.nvidia.driver_mounts import HostFolders, access_to, why_unusable
from pilotlight_runtime.devices.nvidia.gpm import Gpm
from pilotlight_runtime.devices.nvidia.gpu_health import GpuReading, fault_of, read
from pilotlight_runtime.devices.nvidia.gpu_layouts import (
    LayoutChange,
    carry_out,
    change_for,
    missing_after_reboot,
    read_state,
    reread_state,
)
from pilotlight_runtime.devices.nvidia.gpu_state import GpuState
from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu, Survey, take_survey
from pilotlight_runtime.devices.nvidia.mig import CannotCut
from pilotlight_runtime.devices.nvidia.mps import Mps
from pilotlight_runtime.devices.nvidia.nvml_port import Nvml
from pilotlight_runtime.devices.nvidia.xids import XidWatch

log = structlog.get_logger(__name__)

NO_GPU = DeviceAccess(env={"CUDA_VISIBLE_DEVICES": ""})
"""Shown to a container whose GPU is gone, so that it sees no other one."""
NOTHING_THERE = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
"""The errors of a node without a GPU, or without a usable driver."""
EMPTY = Survey(driver="", gpus=(), unreadable=())


@dataclass(frozen=True, kw_only=True)
class GpuStatistics:
    uuid: str
    type: str
    memory: int
    reading: GpuReading
    xids: tuple[int, ...]
    """All errors since the agent has started, by number."""
    withdrawn: str
    """Why it takes no new container; "" if it does."""


FitnessCheck = Callable[[str, Libraries], Awaitable[str]]
"""CUDA's UUID of a device -> why it must not be used, "" if it may."""


@dataclass(frozen=True, kw_only=True)
class GpuOffer:
    shareable: Callable[[DriverGpu], bool] = lambda _: False
    """Whether a GPU may be given in bounded shares."""
    keep: bool = False
    """Whether GPUs stay as their operator has cut them, and in the mode they are in."""
    mps: Mps | None = None
    """What bounds the shares; without it they take turns."""
    check: FitnessCheck | None = None
    """Made before a GPU is offered; in MIG mode, on its first instance."""
    fake: bool = False
    """The GPUs exist in software only: containers on them see nothing of the host."""


@dataclass(frozen=True, kw_only=True)
class DriverTiming:
    """How often the driver is asked, and its time limits, in seconds."""

    start_s: float = 30.0
    """A driver that no process holds open initialises eight GPUs in some ten seconds."""
    refresh_s: float = 5.0
    """A refresh takes milliseconds."""
    change_s: float = 60.0
    """To destroy an instance takes about a second, to list all under load ten."""
    every_s: float = 5.0
    """Between two refreshes."""


class NvmlDevices:
    """An async context manager that finds the GPUs on entry; finding none is no failure."""

    def __init__(
        self,
        nvml: Nvml = pynvml,
        offer: GpuOffer | None = None,
        *,
        host: HostFolders | None = None,
        libraries: Callable[[], Libraries] = find_libraries,
        timing: DriverTiming | None = None,
    ) -> None:
        self.survey = EMPTY
        self.libraries = Libraries(libcuda=None, env={}, read_only=())
        self.absent = ""
        """The driver's reason why no GPU is known."""
        self.broken = False
        self.not_offered: dict[str, str] = {}
        """Unusable GPUs -> the reason."""
        self._nvml = nvml
        self._host = host or HostFolders()
        self._find_libraries = libraries
        self._offer = offer or GpuOffer()
        self.timing = timing or DriverTiming()
        self._thread = BoundedThread("nvml")
        self._is_open = False
        self._xids: XidWatch | None = None
        self._states: dict[str, GpuState] = {}
        self._gpms: dict[str, Gpm] = {}
        self._readings: dict[str, GpuReading] = {}
        self._busy: dict[str, int] = {}
        """Percent, by MIG instance (UUID)."""
        self._faults: dict[str, str] = {}
        self._unfit: dict[str, str] = {}
        self._untried: set[str] = set()
        """GPUs without a fitness check yet."""
        self._todo: deque[tuple[str, LayoutChange]] = deque()
        self._commanded = asyncio.Event()
        self._lost_sight: set[str] = set()
        """GPUs whose change was not seen to end."""

    async def __aenter__(self) -> Self:
        try:
            found = await self._thread.call(self._begin, self.timing.start_s)
        except pynvml.NVMLError as error:
            self.absent, self.broken = str(error), error.value not in NOTHING_THERE
        except TimeoutError:
            self.absent, self.broken = f"the driver has not answered within {self.timing.start_s:g} s", True
        else:
            self._is_open = True
            self._take(found)
            self._untried = set(self._states) if self._offer.check else set()
            async with asyncio.TaskGroup() as group:
                for state in self._states.values():
                    group.create_task(self._try(state))
            await self.refresh()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_open:
            with contextlib.suppress(pynvml.NVMLError, TimeoutError):
                await self._thread.call(self._end, self.timing.refresh_s)
        self._thread.close()

    # -- the port -----------------------------------------------------------------------------------------------

    def inventory(self) -> list[SliceReport]:
        return [part for state in self._states.values() for part in state.slices()]

    def part(self, name: SliceName) -> SliceReport | None:
        states = [self._states.get(uuid) for uuid in name.devices]
        parts = [state.part(name) for state in states if state is not None] if len(states) == 1 else []
        if len(states) > 1:
            wholes = [state.part(SliceName(devices=(state.uuid,))) for state in states if state is not None]
            return several_whole(name, [part for part in wholes if part is not None])
        return parts[0] if parts else None

    def withdrawn(self) -> Mapping[str, str]:
        return {**self._unfit, **self._faults}

    def access(self, slice_id: str) -> DeviceAccess:
        name = SliceName.parse(slice_id)
        states = [self._states[uuid] for uuid in name.devices]
        if (part := self.part(name)) is None:
            raise LookupError(slice_id)
        if self._offer.fake:
            return NO_GPU
        instance = states[0].instance(name)
        first, *more = (state.gpu for state in states)
        found = access_to(first, self.libraries, self._host, instance, *more)
        return self._offer.mps.bounded(found, part) if self._offer.mps and name.units else found

    def reports(self, on: Mapping[str, str], /) -> list[DeviceReport]:
        withdrawn = self.withdrawn()
        return [
            state.report(self._readings.get(uuid), self._busy, on, withdrawn.get(uuid, ""))
            for uuid, state in self._states.items()
        ]

    def command(self, command: DeviceCommand, busy: Collection[str], /) -> str:
        state = self._states.get(command.device)
        if state is None:
            return "no_such_device"
        change = change_for(state, command, busy)
        if isinstance(change, str) or change.is_nothing:
            return change if isinstance(change, str) else ""
        self._begin_change(state, change)
        return ""

    async def watch(self, changed: Callable[[], None]) -> None:
        self._announce()
        while self._states:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.timing.every_s):
                    await self._commanded.wait()
            self._commanded.clear()
            while self._todo:
                await self._change(*self._todo.popleft())
                changed()
            before, cut = self._faults, self._states
            await self.refresh()
            if self._faults != before:
                _announce_change(before, self._faults)
            if self._faults != before or self._states != cut:
                changed()

    # -- cutting ------------------------------------------------------------------------------------------------

    async def restore(self, layouts: Mapping[str, GpuLayout], /) -> None:
        for uuid, layout in layouts.items():
            if (state := self._states.get(uuid)) is None:
                continue
            change = missing_after_reboot(state, layout.places, was_mig=layout.mig)
            if not change.is_nothing:
                log.info("a GPU is cut as it was", gpu=uuid, places=[str(place) for place in layout.places])
                self._begin_change(state, change)
        while self._todo:
            await self._change(*self._todo.popleft())

    def layouts(self) -> dict[str, GpuLayout]:
        return {
            uuid: GpuLayout(mig=state.mode is MigMode.ON, places=state.places)
            for uuid, state in self._states.items()
            if state.family is not None and not state.changing
        }

    def _begin_change(self, state: GpuState, change: LayoutChange) -> None:
        leaving = frozenset(one.place for one in change.destroy)
        self._states[state.uuid] = replace(state, changing=True, leaving=leaving, refused="")
        self._todo.append((state.uuid, change))
        self._commanded.set()

    async def _change(self, uuid: str, change: LayoutChange) -> None:
        try:
            state = await self._thread.call(lambda: self._carry_out(uuid, change), self.timing.change_s)
            await self._try(state)
            self._states[uuid] = state
        except TimeoutError:
            # The thread goes on with it; the next answer of the driver shows the result.
            self._lost_sight.add(uuid)
            log.error("the driver does not come to an end with a change", gpu=uuid)
        if why := self._states[uuid].refused:
            log.warning("a GPU could not be cut as it was commanded", gpu=uuid, why=why)

    def _carry_out(self, uuid: str, change: LayoutChange) -> GpuState:
        state, why = self._states[uuid], ""
        try:
            carry_out(self._nvml, state, change)
        except CannotCut as error:
            why = str(error)
        try:
            state = reread_state(self._nvml, state)
        except pynvml.NVMLError as error:
            state, why = replace(state, changing=False), f"{why}; it cannot be read: {error}".removeprefix("; ")
        return replace(state, refused=why)

    async def _try(self, state: GpuState) -> None:
        visible = state.uuid if state.mode is not MigMode.ON else next((one.uuid for one in state.instances), "")
        if self._offer.check is None or state.uuid not in self._untried or not visible:
            return
        self._untried.discard(state.uuid)
        if why := await self._offer.check(visible, self.libraries):
            self._unfit[state.uuid] = f"it has failed the fitness check: {why}"
            log.warning("a GPU takes no new container", gpu=state.uuid, why=self._unfit[state.uuid])

    # -- how they are -------------------------------------------------------------------------------------------

    async def refresh(self) -> bool:
        """Read all GPUs anew; returns whether `withdrawn` has changed."""
        before = self._faults
        try:
            self._readings, states, self._busy = await self._thread.call(self._read_all, self.timing.refresh_s)
        except TimeoutError:
            why = f"the driver has not answered for {self.timing.refresh_s:g} s"
            self._readings = dict.fromkeys(self._states, GpuReading(error=why))
        else:
            for uuid, state in states.items():
                if state is not self._states[uuid] and (uuid in self._lost_sight or not self._states[uuid].changing):
                    self._states[uuid] = state
                    self._lost_sight.discard(uuid)
        faults = {uuid: fault_of(seen, self._xids_of(uuid)) for uuid, seen in self._readings.items()}
        self._faults = {uuid: why for uuid, why in faults.items() if why}
        return before != self._faults

    def statistics(self) -> tuple[GpuStatistics, ...]:
        return tuple(
            GpuStatistics(
                uuid=uuid,
                type=state.product.type,
                memory=state.gpu.memory,
                reading=self._readings[uuid],
                xids=self._xids_of(uuid),
                withdrawn=self._faults.get(uuid, ""),
            )
            for uuid, state in self._states.items()
        )

    @property
    def deaf(self) -> Mapping[str, str]:
        """The GPUs whose errors the driver does not report -> the reason."""
        return self._xids.deaf if self._xids else {}

    def _xids_of(self, uuid: str) -> tuple[int, ...]:
        return self._xids.of(uuid) if self._xids else ()

    def _take(self, found: Mapping[str, GpuState | str]) -> None:
        for uuid, state in found.items():
            if isinstance(state, str):
                self.not_offered[uuid] = state
            else:
                self._states[uuid] = state

    def _announce(self) -> None:
        if self._states:
            types = [state.product.type for state in self._states.values()]
            log.info("this node offers GPUs", driver=self.survey.driver, types=types)
        else:
            (log.warning if self.broken else log.info)("this node offers no GPUs", why=self.absent or "it has none")
        for uuid, why in self.not_offered.items():
            log.warning("a GPU is not offered", gpu=uuid, why=why)
        for why in self.survey.unreadable:
            log.warning("a GPU is not offered", why=why)
        _announce_change({}, self._faults)

    # -- in the thread ------------------------------------------------------------------------------------------

    def _begin(self) -> dict[str, GpuState | str]:
        self._nvml.nvmlInit()
        try:
            self.survey = take_survey(self._nvml)
            self.libraries = self._find_libraries() if self.survey.gpus else self.libraries
            self._xids = XidWatch(self._nvml, self.survey.gpus)
            return {gpu.uuid: self._first_look(gpu) for gpu in self.survey.gpus}
        except pynvml.NVMLError:
            self._nvml.nvmlShutdown()
            raise

    def _first_look(self, gpu: DriverGpu) -> GpuState | str:
        if not self._offer.fake and (why := why_unusable(gpu, self.libraries, self._host)):
            return why
        try:
            offer = self._offer
            state = read_state(self._nvml, gpu, shareable=offer.shareable(gpu), fake=offer.fake, kept=offer.keep)
        except pynvml.NVMLError as error:
            return f"how it is cut cannot be read: {error}"
        if state.mode is MigMode.ON and state.family is None:
            return f"it is in MIG mode, and {state.uncut}: nvidia-smi -mig 0"
        self._gpms[gpu.uuid] = Gpm(self._nvml, gpu.handle)
        return state

    def _read_all(self) -> tuple[dict[str, GpuReading], dict[str, GpuState], dict[str, int]]:
        if self._xids:
            self._xids.gather()
        readings = {uuid: read(self._nvml, state.gpu) for uuid, state in self._states.items()}
        states: dict[str, GpuState] = {}
        busy: dict[str, int] = {}
        for uuid, state in self._states.items():
            seen = readings[uuid]
            # An operator may switch the mode by hand. Instances are listed only then: the walk may take seconds.
            moved = not state.changing and seen.mig is not None and seen.mig is not (state.mode is MigMode.ON)
            with contextlib.suppress(pynvml.NVMLError):  # the reading has its error
                states[uuid] = reread_state(self._nvml, state) if moved or uuid in self._lost_sight else state
                if states[uuid].instances and not state.changing:
                    busy |= self._gpms[uuid].sample(states[uuid].instances)
        return readings, states, busy

    def _end(self) -> None:
        if self._xids:
            self._xids.close()
        for gpm in self._gpms.values():
            gpm.close()
        self._nvml.nvmlShutdown()


def _announce_change(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    for uuid, why in now.items():
        if before.get(uuid) != why:
            log.warning("a GPU takes no new container", gpu=uuid, why=why)
    for uuid in before.keys() - now.keys():
        log.info("a GPU is offered again", gpu=uuid)


def several_whole(name: SliceName, parts: list[SliceReport]) -> SliceReport | None:
    """Several whole GPUs as one slice; None if one of them is not offered whole, or prices differ."""
    if len(parts) < len(name.devices) or len({part.price for part in parts}) > 1:
        return None
    memory = sum(part.memory for part in parts)
    return msgspec.structs.replace(parts[0], id=str(name), ppm=len(parts) * WHOLE_DEVICE, memory=memory)
