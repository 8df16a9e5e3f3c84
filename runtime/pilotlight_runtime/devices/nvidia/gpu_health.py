"""Whether a GPU can be trusted with another container, from what is read every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pynvml

from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu, is_mig, optional
from pilotlight_runtime.devices.nvidia.nvml_port import Nvml

APPLICATION_XIDS = frozenset(
    {
        13,  # graphics engine exception
        31,  # memory page fault
        43,  # the GPU stopped processing
        45,  # cleanup after an earlier error
        68,  # video processor exception
        109,  # context switch timeout
    }
)
"""Errors (Xid) that a program causes: the list of NVIDIA's own device plugin for Kubernetes."""


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """One reading of a GPU. None is what it does not report."""

    utilisation: int | None = None
    """Percent of the last sample period in which a kernel ran."""
    memory_used: int | None = None
    """Bytes."""
    memory_errors: int | None = None
    """Uncorrectable ones since the driver was loaded."""
    remap_failed: bool | None = None
    """A defective row of memory could not be replaced."""
    mig: bool | None = None
    processes: int | None = None
    error: str = ""


def read(nvml: Nvml, gpu: DriverGpu) -> GpuReading:
    """Read one GPU. Blocks; an error of the driver becomes a part of the reading."""
    uncorrected, since_load = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    try:
        rates = optional(nvml.nvmlDeviceGetUtilizationRates, gpu.handle)
        memory = optional(nvml.nvmlDeviceGetMemoryInfo, gpu.handle)
        rows = optional(nvml.nvmlDeviceGetRemappedRows, gpu.handle)
        running = optional(nvml.nvmlDeviceGetComputeRunningProcesses, gpu.handle)
        return GpuReading(
            utilisation=None if rates is None else int(rates.gpu),
            memory_used=None if memory is None else int(memory.used),
            memory_errors=optional(nvml.nvmlDeviceGetTotalEccErrors, gpu.handle, uncorrected, since_load),
            remap_failed=None if rows is None else bool(rows[3]),
            mig=is_mig(nvml, gpu.handle),
            processes=None if running is None else len(running),
        )
    except pynvml.NVMLError as error:
        return GpuReading(error=str(error))


RULES: tuple[Callable[[GpuReading], str], ...] = (
    lambda seen: seen.error and f"it cannot be read: {seen.error}",
    lambda seen: "a defective row of its memory could not be replaced" if seen.remap_failed else "",
    lambda seen: f"{seen.memory_errors} uncorrectable memory errors: reset it" if seen.memory_errors else "",
)
"""What takes a GPU out of service, the first reason that applies; "" is none."""


def fault_of(reading: GpuReading, xids: Collection[int]) -> str:
    """Why a GPU takes no new container; "" if it does. `xids` are all errors of it since the agent has started.

    An error that no program caused counts until the agent restarts: its GPU needs a reset, which an agent that holds it
    open prevents.
    """
    grave = sorted(set(xids) - APPLICATION_XIDS)
    if grave:
        return f"the driver reported Xid {', '.join(map(str, grave))}: reset it, then start the agent anew"
    return next((why for rule in RULES if (why := rule(reading))), "")
