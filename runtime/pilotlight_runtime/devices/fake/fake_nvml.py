"""NVML for tests: GPUs made of fields, and every refusal that the real library has for a wrong call.

FakeNvml([FakeGpu(), FakeGpu(mig=True)])     the machine; FakeNvml(library=False) has no driver .calls
the last ten thousand functions called gpu.lost = True                              it fell off the bus: each call on it
raises GPU_IS_LOST gpu.errors["nvmlDeviceGetEccMode"] = code    this function raises that error for it
nvml.report_xid(gpu, 79)                     the driver reports an error of it nvml.hang() … nvml.release()
calls block in between

A field that is None is missing on this GPU: asking for it raises NOT_SUPPORTED.
"""

# ruff: noqa: N802, N803 - named as NVML names them

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml

from pilotlight_runtime.devices.fake.fake_gpu import GIB as GIB
from pilotlight_runtime.devices.fake.fake_gpu import FakeGpu as FakeGpu
from pilotlight_runtime.devices.fake.fake_gpu import FakeInstance
from pilotlight_runtime.devices.fake.fake_mig import FakeHandle, FakeMig, supported


@dataclass(kw_only=True, eq=False)
class _EventSet:
    session: int
    gpus: list[FakeGpu] = field(default_factory=list)
    pending: deque[tuple[FakeGpu, int]] = field(default_factory=deque)


class FakeNvml(FakeMig):
    def __init__(self, gpus: list[FakeGpu] | None = None, *, library: bool = True) -> None:
        super().__init__()
        self.gpus = gpus or []
        self.on_change: Callable[[], None] = lambda: None
        """Called when something was cut."""
        self.library = library
        self.init_error: int | None = None
        self.driver = "580.159.04"
        self.missing: set[str] = set()
        """Functions that this driver is too old to have."""
        self.calls: deque[str] = deque(maxlen=10_000)
        self._gate = threading.Event()
        self._gate.set()
        self._users = 0
        self._session = 0
        self._sets: list[_EventSet] = []

    # -- the script ---------------------------------------------------------------------------------------------

    def hang(self) -> None:
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()

    def report_xid(self, gpu: FakeGpu, xid: int) -> None:
        for events in self._sets:
            if gpu in events.gpus:
                events.pending.append((gpu, xid))

    @property
    def is_open(self) -> bool:
        return self._users > 0

    # -- the library --------------------------------------------------------------------------------------------

    def nvmlInit(self) -> None:
        self._called("nvmlInit")
        if not self.library:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        if self.init_error is not None:
            raise pynvml.NVMLError(self.init_error)
        self._session += self._users == 0
        self._users += 1

    def nvmlShutdown(self) -> None:
        self._enter("nvmlShutdown")
        self._users -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        self._enter("nvmlSystemGetDriverVersion")
        return self.driver

    # -- devices ------------------------------------------------------------------------------------------------

    def nvmlDeviceGetCount(self) -> int:
        self._enter("nvmlDeviceGetCount")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        self._enter("nvmlDeviceGetHandleByIndex")
        if not 0 <= index < len(self.gpus):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        handle = self._handle(self.gpus[index])
        self._check("nvmlDeviceGetHandleByIndex", handle)
        return handle

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        gpu = self._device("nvmlDeviceGetUUID", handle)
        return gpu.uuid if handle.instance is None else str(handle.instance.uuid)

    def nvmlDeviceGetName(self, handle: Any) -> str:
        return self._device("nvmlDeviceGetName", handle).name

    def nvmlDeviceGetMinorNumber(self, handle: Any) -> int:
        gpu = self._device("nvmlDeviceGetMinorNumber", handle)
        return self.gpus.index(gpu) if gpu.minor is None else gpu.minor

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:
        gpu = self._device("nvmlDeviceGetPciInfo", handle)
        return SimpleNamespace(domain=0, bus=0x1E + self.gpus.index(gpu), device=0)

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int | None = None) -> Any:
        name = "nvmlDeviceGetMemoryInfo_v2" if version else "nvmlDeviceGetMemoryInfo"
        gpu = self._device(name, handle)
        total = supported(gpu.total)
        free = total - gpu.reserved - gpu.used
        if version is None:
            return SimpleNamespace(total=total, free=free, used=gpu.used + gpu.reserved)
        if version != pynvml.nvmlMemory_v2:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
        return SimpleNamespace(total=total, free=free, used=gpu.used, reserved=gpu.reserved, version=version)

    def nvmlDeviceGetEccMode(self, handle: Any) -> list[int]:
        return _modes(self._device("nvmlDeviceGetEccMode", handle).ecc)

    def nvmlDeviceGetPersistenceMode(self, handle: Any) -> int:
        return int(supported(self._device("nvmlDeviceGetPersistenceMode", handle).persistence))

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:
        gpu = self._device("nvmlDeviceGetUtilizationRates", handle)
        return SimpleNamespace(gpu=supported(None if gpu.mig else gpu.utilisation), memory=0)

    def nvmlDeviceGetTotalEccErrors(self, handle: Any, errorType: int, counterType: int) -> int:
        gpu = self._device("nvmlDeviceGetTotalEccErrors", handle)
        if errorType >= pynvml.NVML_MEMORY_ERROR_TYPE_COUNT or counterType >= pynvml.NVML_ECC_COUNTER_TYPE_COUNT:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        errors = supported(gpu.uncorrected if gpu.ecc else None)
        return errors if errorType == pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED else 0

    def nvmlDeviceGetRemappedRows(self, handle: Any) -> tuple[int, int, int, int]:
        return 0, 0, 0, int(supported(self._device("nvmlDeviceGetRemappedRows", handle).remap_failed))

    # -- events -------------------------------------------------------------------------------------------------

    def nvmlEventSetCreate(self) -> Any:
        self._enter("nvmlEventSetCreate")
        self._sets.append(_EventSet(session=self._session))
        return self._sets[-1]

    def nvmlDeviceRegisterEvents(self, handle: Any, eventTypes: int, eventSet: Any) -> None:
        gpu = self._device("nvmlDeviceRegisterEvents", handle)
        events = self._events(eventSet)
        if not gpu.hears_xids or eventTypes != pynvml.nvmlEventTypeXidCriticalError:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        events.gpus.append(gpu)

    def nvmlEventSetWait_v2(self, eventSet: Any, timeoutms: int) -> Any:
        """Does not wait, since only the caller's thread could report an event."""
        if timeoutms < 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        self._enter("nvmlEventSetWait_v2")
        events = self._events(eventSet)
        if any(gpu.lost for gpu in events.gpus) and not events.pending:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        if not events.pending:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        gpu, xid = events.pending.popleft()
        return SimpleNamespace(
            device=self._handle(gpu),
            eventType=pynvml.nvmlEventTypeXidCriticalError,
            eventData=xid,
        )

    def nvmlEventSetFree(self, eventSet: Any) -> None:
        self._enter("nvmlEventSetFree")
        self._sets.remove(self._events(eventSet))

    # -- its strictness -----------------------------------------------------------------------------------------

    def changed(self) -> None:
        self.on_change()

    def _handle(self, gpu: FakeGpu, instance: FakeInstance | None = None) -> FakeHandle:
        return FakeHandle(gpu=gpu, session=self._session, instance=instance)

    def _called(self, name: str) -> None:
        self.calls.append(name)
        self._gate.wait()

    def _enter(self, name: str) -> None:
        self._called(name)
        if not self._users:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        if name in self.missing:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

    def _device(self, name: str, handle: Any) -> FakeGpu:
        self._enter(name)
        return self._check(name, handle)

    def _check(self, name: str, handle: Any) -> FakeGpu:
        if not isinstance(handle, FakeHandle) or handle.session != self._session:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        if handle.gpu.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        if handle.instance is not None and handle.instance not in handle.gpu.instances.values():
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        if delay := handle.gpu.latency.get(name):
            time.sleep(delay)
        if name in handle.gpu.errors:
            raise pynvml.NVMLError(handle.gpu.errors[name])
        return handle.gpu

    def _events(self, events: Any) -> _EventSet:
        if not isinstance(events, _EventSet) or events not in self._sets or events.session != self._session:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return events


def _modes(mode: bool | None) -> list[int]:
    return [int(supported(mode))] * 2
