"""Cutting a GPU with the driver: its profiles and instances, and making and destroying one.

Everything blocks, and raises `NVMLError`. An instance is a GPU instance with the one compute instance that has all of
it; a half is a GPU instance without one, left by an agent that died between the two steps. Instances are always made at
a chosen place: left to the driver, 1g, 1g, 2g, 3g in this order do not fit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pynvml

from pilotlight_core.model.devices import MigMode, MigPlacement
from pilotlight_placement.hardware.catalogue import ProfileReading
from pilotlight_runtime.devices.nvidia.gpu_survey import UNSUPPORTED
from pilotlight_runtime.devices.nvidia.mig_profiles import COMPUTE, KEYS
from pilotlight_runtime.devices.nvidia.nvml_port import Nvml

NO_PROFILE = UNSUPPORTED | {pynvml.NVML_ERROR_INVALID_ARGUMENT}
"""This GPU has no such profile, or this driver knows no such number."""
SHARED = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
MAX_INSTANCES = 16


class CannotCut(Exception):
    """Why the driver did not carry out a command, for people."""


@dataclass(frozen=True, kw_only=True)
class DriverProfile:
    """The driver's profile; `size` and `starts` are None where it may not be asked for placements."""

    key: str
    id: int
    name: str
    compute: int
    memory: int
    """MiB."""
    sms: int
    size: int | None
    starts: tuple[int, ...] | None

    @property
    def reading(self) -> ProfileReading:
        """For correcting the catalogue."""
        return ProfileReading(name=self.name, memory=self.memory, sms=self.sms, size=self.size, starts=self.starts)


@dataclass(frozen=True, kw_only=True)
class DriverInstance:
    place: MigPlacement
    profile: DriverProfile
    uuid: str
    number: int
    """Its id among the instances of its GPU."""
    compute_number: int
    handle: Any = field(repr=False)
    """Of the GPU instance."""
    compute: Any = field(repr=False)
    device: Any = field(repr=False)
    """Of the MIG device."""


def mode_of(nvml: Nvml, handle: Any) -> MigMode:
    try:
        return MigMode.ON if nvml.nvmlDeviceGetMigMode(handle)[0] else MigMode.OFF
    except pynvml.NVMLError as error:
        if error.value in UNSUPPORTED:
            return MigMode.NONE
        raise


def switches_online(nvml: Nvml, handle: Any) -> bool:
    """Whether the mode of the idle GPU is switched without a reset: from Hopper on."""
    try:
        architecture = nvml.nvmlDeviceGetArchitecture(handle)
    except pynvml.NVMLError as error:
        if error.value in UNSUPPORTED:
            return False
        raise
    # What the library does not know (all bits set) may be anything.
    return bool(pynvml.NVML_DEVICE_ARCH_HOPPER <= architecture < pynvml.NVML_DEVICE_ARCH_UNKNOWN)


def switch(nvml: Nvml, handle: Any, *, on: bool) -> None:
    """Switch MIG mode of an idle GPU; a mode that does not hold at once is not left pending.

    Raises:
        CannotCut: if it is in use, or would have to be reset.
    """
    wanted = pynvml.NVML_DEVICE_MIG_ENABLE if on else pynvml.NVML_DEVICE_MIG_DISABLE
    other = pynvml.NVML_DEVICE_MIG_DISABLE if on else pynvml.NVML_DEVICE_MIG_ENABLE
    if nvml.nvmlDeviceGetMigMode(handle)[0] == wanted:
        return
    status = nvml.nvmlDeviceSetMigMode(handle, wanted)
    if status == pynvml.NVML_SUCCESS:
        return
    nvml.nvmlDeviceSetMigMode(handle, other)  # else the next reset would switch it unexpectedly
    if status == pynvml.NVML_ERROR_IN_USE:
        raise CannotCut("some process uses the GPU (monitoring counts too): stop it first")
    raise CannotCut("its MIG mode cannot be switched without a reset of the GPU: nvidia-smi mig, with the node drained")


def profiles(nvml: Nvml, handle: Any) -> tuple[DriverProfile, ...]:
    """Those of the GPU's profiles that placement knows."""
    found = []
    for number, key in KEYS.items():
        try:
            info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number)
        except pynvml.NVMLError as error:
            if error.value in NO_PROFILE:
                continue
            raise
        size, starts = _placements(nvml, handle, int(info.id))
        name = info.name.decode() if isinstance(info.name, bytes) else str(info.name)
        found.append(
            DriverProfile(
                key=key,
                id=int(info.id),
                name=name.removeprefix("MIG ").strip(),
                compute=int(info.sliceCount),
                memory=int(info.memorySizeMB),
                sms=int(info.multiprocessorCount),
                size=size,
                starts=starts,
            )
        )
    return tuple(found)


def instances(nvml: Nvml, handle: Any, known: Iterable[DriverProfile]) -> tuple[list[DriverInstance], list[Any]]:
    """The instances of a GPU in MIG mode by start, and the handles of halves."""
    found, halves = [], []
    for profile in known:
        for gpu_instance in _handles(nvml, handle, profile):
            compute = _compute(nvml, gpu_instance, profile)
            if compute is None:
                halves.append(gpu_instance)
            else:
                found.append(_described(nvml, profile, gpu_instance, compute))
    return sorted(found, key=lambda one: one.place), halves


def create(nvml: Nvml, handle: Any, profile: DriverProfile, start: int, size: int) -> DriverInstance:
    """Make an instance; if its second half cannot be made, the first is destroyed again.

    Raises:
        CannotCut: if the place is not free, or the driver refuses this process.
    """
    try:
        placement = pynvml.c_nvmlGpuInstancePlacement_t(start, size)
        gpu_instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(handle, profile.id, ctypes.byref(placement))
        try:
            compute = nvml.nvmlGpuInstanceCreateComputeInstance(gpu_instance, _compute_id(nvml, gpu_instance, profile))
        except pynvml.NVMLError:
            nvml.nvmlGpuInstanceDestroy(gpu_instance)
            raise
    except pynvml.NVMLError as error:
        raise CannotCut(f"{profile.name} at {start} could not be made: {error}") from error
    return _described(nvml, profile, gpu_instance, compute)


def destroy(nvml: Nvml, instance: DriverInstance) -> None:
    """Destroy an idle instance.

    Raises:
        CannotCut: if a process is on it, or the driver refuses this process.
    """
    try:
        if pids := processes(nvml, instance.device):
            raise CannotCut(f"{instance.place} has processes: {', '.join(map(str, pids))}")
        nvml.nvmlComputeInstanceDestroy(instance.compute)
        nvml.nvmlGpuInstanceDestroy(instance.handle)
    except pynvml.NVMLError as error:
        raise CannotCut(f"{instance.place} could not be destroyed: {error}") from error


def processes(nvml: Nvml, handle: Any) -> tuple[int, ...]:
    """The pids that compute on a GPU or MIG device; none where the driver does not list them."""
    try:
        return tuple(int(process.pid) for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except pynvml.NVMLError as error:
        if error.value in UNSUPPORTED:
            return ()
        raise


def _placements(nvml: Nvml, handle: Any, profile: int) -> tuple[int | None, tuple[int, ...] | None]:
    count = ctypes.c_uint(0)
    try:
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, None, ctypes.byref(count))
        array = (pynvml.c_nvmlGpuInstancePlacement_t * max(1, count.value))()
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, array, ctypes.byref(count))
    except pynvml.NVMLError as error:
        if error.value in NO_PROFILE:
            return None, None
        raise
    found = array[: count.value]
    if not found:
        return None, None
    return int(found[0].size), tuple(sorted(int(place.start) for place in found))


def _handles(nvml: Nvml, handle: Any, profile: DriverProfile) -> list[Any]:
    array, count = (pynvml.c_nvmlGpuInstance_t * MAX_INSTANCES)(), ctypes.c_uint(MAX_INSTANCES)
    nvml.nvmlDeviceGetGpuInstances(handle, profile.id, array, ctypes.byref(count))
    return list(array[: count.value])


def _compute_id(nvml: Nvml, gpu_instance: Any, profile: DriverProfile) -> int:
    number = COMPUTE[profile.compute]
    return int(nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(gpu_instance, number, SHARED).id)


def _compute(nvml: Nvml, gpu_instance: Any, profile: DriverProfile) -> Any | None:
    array, count = (pynvml.c_nvmlComputeInstance_t * MAX_INSTANCES)(), ctypes.c_uint(MAX_INSTANCES)
    number = _compute_id(nvml, gpu_instance, profile)
    nvml.nvmlGpuInstanceGetComputeInstances(gpu_instance, number, array, ctypes.byref(count))
    return array[0] if count.value else None


def _described(nvml: Nvml, profile: DriverProfile, gpu_instance: Any, compute: Any) -> DriverInstance:
    info, inner = nvml.nvmlGpuInstanceGetInfo(gpu_instance), nvml.nvmlComputeInstanceGetInfo(compute)
    return DriverInstance(
        place=MigPlacement(start=int(info.placement.start), profile=profile.key),
        profile=profile,
        uuid=nvml.nvmlDeviceGetUUID(inner.device),
        number=int(info.id),
        compute_number=int(inner.id),
        handle=gpu_instance,
        compute=compute,
        device=inner.device,
    )
