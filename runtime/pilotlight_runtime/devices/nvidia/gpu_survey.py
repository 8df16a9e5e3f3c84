"""The GPUs of a node, read once when the agent starts. Everything blocks for as long as the driver does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pynvml

from pilotlight_runtime.devices.nvidia.nvml_port import Nvml

UNSUPPORTED = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,  # this GPU has no such thing
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,  # this driver has no such function
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_NO_PERMISSION,  # an agent that is not root
    }
)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class DriverGpu:
    """The driver's description of a GPU. None is what this GPU, or this driver, does not have."""

    handle: Any = field(repr=False)
    uuid: str
    name: str
    minor: int
    """N of /dev/nvidiaN."""
    pci: str
    """Its address as the kernel writes it: "0000:1e:00.0"."""
    memory: int
    """Bytes that programs may allocate; 0 if unknown."""
    mig: bool | None
    ecc: bool | None
    persistence: bool | None


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The GPUs found; `unreadable` maps those that could not be read to the reason."""

    driver: str
    gpus: tuple[DriverGpu, ...]
    unreadable: tuple[str, ...]


def take_survey(nvml: Nvml) -> Survey:
    """Read every GPU, also beside one that cannot be read. Raises `NVMLError` if the driver is broken."""
    gpus, unreadable = [], []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpus.append(_gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(index)))
        except pynvml.NVMLError as error:
            unreadable.append(f"GPU {index} cannot be read: {error}")
    return Survey(driver=nvml.nvmlSystemGetDriverVersion(), gpus=tuple(gpus), unreadable=tuple(unreadable))


def _gpu(nvml: Nvml, handle: Any) -> DriverGpu:
    persistence = optional(nvml.nvmlDeviceGetPersistenceMode, handle)
    pci = nvml.nvmlDeviceGetPciInfo(handle)
    return DriverGpu(
        handle=handle,
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        minor=nvml.nvmlDeviceGetMinorNumber(handle),
        pci=f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0",
        memory=_usable_memory(nvml, handle),
        mig=is_mig(nvml, handle),
        ecc=_current(optional(nvml.nvmlDeviceGetEccMode, handle)),
        persistence=None if persistence is None else bool(persistence),
    )


def is_mig(nvml: Nvml, handle: Any) -> bool | None:
    """None if it has no such mode."""
    return _current(optional(nvml.nvmlDeviceGetMigMode, handle))


def optional(function: Callable[..., T], *arguments: Any) -> T | None:
    """The result of `function`; None if it is not supported here."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        if error.value in UNSUPPORTED:
            return None
        raise


def _usable_memory(nvml: Nvml, handle: Any) -> int:
    """What is not reserved, if the driver reports that."""
    memory = optional(nvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if memory is not None:
        return int(memory.total - memory.reserved)
    memory = optional(nvml.nvmlDeviceGetMemoryInfo, handle)
    return 0 if memory is None else int(memory.total)


def _current(modes: list[int] | None) -> bool | None:
    return None if modes is None else bool(modes[0])
