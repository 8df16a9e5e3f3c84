"""How busy MIG instances are, by performance monitoring (GPM): a GPU's plain counter does not work in MIG mode.

A metric lies between two samples, so an instance has none at first. Only GPUs from Hopper on have GPM.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import pynvml

from pilotlight_runtime.devices.nvidia.gpu_survey import optional
from pilotlight_runtime.devices.nvidia.mig import DriverInstance
from pilotlight_runtime.devices.nvidia.nvml_port import Nvml


class Gpm:
    """The last sample of each instance of one GPU. Everything blocks."""

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._last: dict[str, Any] = {}
        """By the instance's UUID, which is never used again."""
        support = optional(nvml.nvmlGpmQueryDeviceSupport, handle)
        self.is_supported = bool(support is not None and support.isSupportedDevice)

    def sample(self, instances: Iterable[DriverInstance]) -> dict[str, int]:
        """UUID -> percent of the time since the last sample in which the instance computed; none for a new one."""
        found: dict[str, int] = {}
        if not self.is_supported:
            return found
        here = {one.uuid: one for one in instances}
        for uuid in self._last.keys() - here.keys():
            self._nvml.nvmlGpmSampleFree(self._last.pop(uuid))
        for uuid, one in here.items():
            sample = self._nvml.nvmlGpmSampleAlloc()
            try:
                self._nvml.nvmlGpmMigSampleGet(self._handle, one.number, sample)
                if uuid in self._last:
                    found[uuid] = self._between(self._last[uuid], sample)
            except pynvml.NVMLError:
                self._nvml.nvmlGpmSampleFree(sample)
                raise
            if uuid in self._last:
                self._nvml.nvmlGpmSampleFree(self._last[uuid])
            self._last[uuid] = sample
        return found

    def close(self) -> None:
        for sample in self._last.values():
            with contextlib.suppress(pynvml.NVMLError):
                self._nvml.nvmlGpmSampleFree(sample)
        self._last.clear()

    def _between(self, earlier: Any, later: Any) -> int:
        asked = pynvml.c_nvmlGpmMetricsGet_t()
        asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = 1
        asked.sample1, asked.sample2 = earlier, later
        asked.metrics[0].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL
        self._nvml.nvmlGpmMetricsGet(asked)
        return int(max(0, min(100, round(asked.metrics[0].value))))
