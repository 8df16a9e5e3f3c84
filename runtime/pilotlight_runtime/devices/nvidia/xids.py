"""The errors of GPUs ("Xid" and a number), gathered from the driver's event queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pynvml

from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu
from pilotlight_runtime.devices.nvidia.nvml_port import Nvml

AT_ONCE = 256
"""Events taken at a time; the rest waits for the next."""


class XidWatch:
    """All its methods but `of` block."""

    def __init__(self, nvml: Nvml, gpus: Iterable[DriverGpu]) -> None:
        self._nvml = nvml
        self._known: dict[str, tuple[int, ...]] = {}
        self._all = [gpu.uuid for gpu in gpus]
        self._events: Any = None
        self.deaf: dict[str, str] = {}
        """The GPUs without events -> the reason."""
        try:
            self._events = nvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            self.deaf = {uuid: str(error) for uuid in self._all}
            return
        for gpu in gpus:
            try:
                nvml.nvmlDeviceRegisterEvents(gpu.handle, pynvml.nvmlEventTypeXidCriticalError, self._events)
            except pynvml.NVMLError as error:
                self.deaf[gpu.uuid] = str(error)

    def of(self, uuid: str) -> tuple[int, ...]:
        """The different errors of one GPU so far, the latest last."""
        return self._known.get(uuid, ())

    def gather(self) -> None:
        for _ in range(AT_ONCE if self._events is not None else 0):
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._events, 0)
            except pynvml.NVMLError_Timeout:
                return
            except pynvml.NVMLError as error:
                # A lost GPU breaks the queue of all; the others can still be read.
                self.deaf = dict.fromkeys(self._all, str(error))
                return
            for uuid in self._of_whom(event):
                self._known[uuid] = (*(xid for xid in self.of(uuid) if xid != event.eventData), int(event.eventData))

    def close(self) -> None:
        if self._events is not None:
            self._nvml.nvmlEventSetFree(self._events)

    def _of_whom(self, event: Any) -> list[str]:
        """The GPU of an event; any of them if it is too broken to be identified."""
        try:
            return [self._nvml.nvmlDeviceGetUUID(event.device)]
        except pynvml.NVMLError:
            return self._all
