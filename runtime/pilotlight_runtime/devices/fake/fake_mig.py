"""The part of the double of NVML that cuts GPUs, as strict as the driver.

It refuses what the driver's header names: calls without root, out of MIG mode, at a taken or illegal place
(`INSUFFICIENT_RESOURCES`), on something in use (`IN_USE`), with the handle of something destroyed. An instance created
without a place gets the highest free start, so that the order 1g, 1g, 2g, 3g fails where 3g, 2g, 1g, 1g does not.
"""

# ruff: noqa: N802, N803 - named as NVML names them

from __future__ import annotations

import ctypes
import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pynvml

from pilotlight_placement.hardware.geometry import Profile
from pilotlight_runtime.devices.fake.fake_gpu import COMPUTE_IDS, FakeGpu, FakeInstance
from pilotlight_runtime.devices.nvidia.mig_profiles import COMPUTE, KEYS

_samples = itertools.count(0x100000, 16)


@dataclass(frozen=True, kw_only=True, eq=False)
class FakeHandle:
    """A GPU, or with `instance` a MIG device of it."""

    gpu: FakeGpu
    session: int
    instance: FakeInstance | None = None


class FakeMig(ABC):
    def __init__(self) -> None:
        self.root = True
        """Whether the caller may change anything."""
        self._taken: dict[int, float] = {}
        """Address of a GPM sample -> the utilisation in it."""

    gpus: list[FakeGpu]

    @abstractmethod
    def _enter(self, name: str) -> None: ...

    @abstractmethod
    def _device(self, name: str, handle: Any) -> FakeGpu: ...

    @abstractmethod
    def _handle(self, gpu: FakeGpu, instance: FakeInstance | None = None) -> FakeHandle: ...

    # -- mode ---------------------------------------------------------------------------------------------------

    def nvmlDeviceGetArchitecture(self, handle: Any) -> int:
        return self._device("nvmlDeviceGetArchitecture", handle).architecture

    def nvmlDeviceGetMigMode(self, handle: Any) -> list[int]:
        gpu = self._device("nvmlDeviceGetMigMode", handle)
        current = supported(gpu.mig)
        return [int(current), int(current if gpu.pending is None else gpu.pending)]

    def nvmlDeviceSetMigMode(self, handle: Any, mode: int) -> int:
        """If the mode cannot hold yet, it becomes pending, and the reason is returned."""
        gpu = self._device("nvmlDeviceSetMigMode", handle)
        self._need_root()
        supported(gpu.mig)
        if mode not in (pynvml.NVML_DEVICE_MIG_DISABLE, pynvml.NVML_DEVICE_MIG_ENABLE):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        gpu.pending = None if bool(mode) == gpu.mig else bool(mode)
        if gpu.pending is None:
            return int(pynvml.NVML_SUCCESS)
        if gpu.users or gpu.instances:
            return int(pynvml.NVML_ERROR_IN_USE)
        if not gpu.device.online_mig:
            return int(pynvml.NVML_ERROR_RESET_REQUIRED)
        gpu.mig, gpu.pending = bool(mode), None
        return int(pynvml.NVML_SUCCESS)

    # -- profiles and places ------------------------------------------------------------------------------------

    def nvmlDeviceGetGpuInstanceProfileInfo(self, device: Any, profile: int, version: int = 2) -> Any:
        gpu = self._device("nvmlDeviceGetGpuInstanceProfileInfo", device)
        if version != 2:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        if not 0 <= profile < pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        for number, cut in gpu.cuts.items():
            if cut.profile.key == KEYS.get(profile):
                return SimpleNamespace(
                    id=number, isP2pSupported=0, sliceCount=cut.profile.compute, instanceCount=cut.profile.most,
                    multiprocessorCount=cut.sms, memorySizeMB=cut.memory, name=f"MIG {cut.name}".encode(),
                )  # fmt: skip
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetGpuInstancePossiblePlacements(
        self, device: Any, profileId: int, placementsRef: Any, countRef: Any
    ) -> int:
        """Every legal place, free or not; works with MIG mode off."""
        gpu = self._device("nvmlDeviceGetGpuInstancePossiblePlacements", device)
        self._need_root()
        profile = _profile(gpu, profileId)
        _fill(countRef, placementsRef, [(start, profile.size) for start in profile.starts], _place)
        return 0

    def nvmlDeviceGetGpuInstanceRemainingCapacity(self, device: Any, profileId: int) -> int:
        gpu = self._cut("nvmlDeviceGetGpuInstanceRemainingCapacity", device)
        profile = _profile(gpu, profileId)
        there = sum(one.profile is profile for one in gpu.instances.values())
        return min(len(gpu.free_starts(profile)), profile.most - there)

    # -- instances ----------------------------------------------------------------------------------------------

    def nvmlDeviceCreateGpuInstance(self, device: Any, profileId: int) -> Any:
        gpu = self._cut("nvmlDeviceCreateGpuInstance", device)
        self._need_root()
        return self._create(gpu, _profile(gpu, profileId), None)

    def nvmlDeviceCreateGpuInstanceWithPlacement(self, device: Any, profileId: int, placement: Any) -> Any:
        gpu = self._cut("nvmlDeviceCreateGpuInstanceWithPlacement", device)
        self._need_root()
        profile, wanted = _profile(gpu, profileId), referred(placement)
        if wanted.size != profile.size:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self._create(gpu, profile, wanted.start)

    def nvmlDeviceGetGpuInstances(self, device: Any, profileId: int, gpuInstancesRef: Any, countRef: Any) -> int:
        """Out of MIG mode there are none, which is no error."""
        gpu = self._device("nvmlDeviceGetGpuInstances", device)
        self._need_root()
        profile = _profile(gpu, profileId)
        found = [one.address for one in gpu.instances.values() if one.profile is profile]
        _fill(countRef, gpuInstancesRef, found, lambda address: pointer(pynvml.c_nvmlGpuInstance_t, address))
        return 0

    def nvmlGpuInstanceGetInfo(self, gpuInstance: Any) -> Any:
        gpu, one = self._instance("nvmlGpuInstanceGetInfo", gpuInstance)
        place = SimpleNamespace(start=one.start, size=one.profile.size)
        return SimpleNamespace(device=self._handle(gpu), id=one.id, profileId=gpu.id_of(one.profile), placement=place)

    def nvmlGpuInstanceDestroy(self, gpuInstance: Any) -> int:
        gpu, one = self._instance("nvmlGpuInstanceDestroy", gpuInstance)
        self._need_root()
        if one.compute or one.processes:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
        del gpu.instances[one.id]
        self.changed()
        return 0

    # -- compute instances --------------------------------------------------------------------------------------

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(
        self, gpuInstance: Any, profile: int, engProfile: int, version: int = 2
    ) -> Any:
        _, one = self._instance("nvmlGpuInstanceGetComputeInstanceProfileInfo", gpuInstance)
        if engProfile != pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED or version != 2:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        slices = next((slices for slices, number in COMPUTE.items() if number == profile), 0)
        if not 0 < slices <= one.profile.compute:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(id=COMPUTE_IDS[slices], sliceCount=slices)

    def nvmlGpuInstanceCreateComputeInstance(self, gpuInstance: Any, profileId: int) -> Any:
        _, one = self._instance("nvmlGpuInstanceCreateComputeInstance", gpuInstance)
        self._need_root()
        # Of compute instances only the one that has all of its GPU instance is modelled: no other is ever made.
        if profileId != COMPUTE_IDS[one.profile.compute]:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        if one.compute:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES)
        one.compute = True
        self.changed()
        return pointer(pynvml.c_nvmlComputeInstance_t, one.compute_address)

    def nvmlGpuInstanceGetComputeInstances(
        self, gpuInstance: Any, profileId: int, computeInstancesRef: Any, countRef: Any
    ) -> int:
        _, one = self._instance("nvmlGpuInstanceGetComputeInstances", gpuInstance)
        fits = one.compute and profileId == COMPUTE_IDS[one.profile.compute]
        found = [one.compute_address] if fits else []
        _fill(countRef, computeInstancesRef, found, lambda address: pointer(pynvml.c_nvmlComputeInstance_t, address))
        return 0

    def nvmlComputeInstanceGetInfo(self, computeInstance: Any) -> Any:
        gpu, one = self._compute("nvmlComputeInstanceGetInfo", computeInstance)
        profile = COMPUTE_IDS[one.profile.compute]
        return SimpleNamespace(device=self._handle(gpu, one), id=0, profileId=profile)

    def nvmlComputeInstanceDestroy(self, computeInstance: Any) -> int:
        _, one = self._compute("nvmlComputeInstanceDestroy", computeInstance)
        self._need_root()
        if one.processes:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
        one.compute = False
        self.changed()
        return 0

    # -- MIG devices --------------------------------------------------------------------------------------------

    def nvmlDeviceGetMaxMigDeviceCount(self, device: Any) -> int:
        gpu = self._device("nvmlDeviceGetMaxMigDeviceCount", device)
        return max((cut.profile.most for cut in gpu.cuts.values()), default=0)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, index: int) -> Any:
        gpu = self._cut("nvmlDeviceGetMigDeviceHandleByIndex", device)
        whole = [one for one in gpu.instances.values() if one.compute]
        if not 0 <= index < len(whole):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return self._handle(gpu, whole[index])

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, migDevice: Any) -> Any:
        gpu = self._device("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", migDevice)
        if migDevice.instance is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self._handle(gpu)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Any]:
        gpu = self._device("nvmlDeviceGetComputeRunningProcesses", handle)
        pids = gpu.users if handle.instance is None else handle.instance.processes
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]

    # -- performance monitoring ---------------------------------------------------------------------------------

    def nvmlGpmQueryDeviceSupport(self, device: Any) -> Any:
        gpu = self._device("nvmlGpmQueryDeviceSupport", device)
        hopper = gpu.architecture >= pynvml.NVML_DEVICE_ARCH_HOPPER
        return SimpleNamespace(isSupportedDevice=int(gpu.gpm and hopper))

    def nvmlGpmSampleAlloc(self) -> Any:
        self._enter("nvmlGpmSampleAlloc")
        address = next(_samples)
        self._taken[address] = 0.0
        return pointer(pynvml.c_nvmlGpmSample_t, address)

    def nvmlGpmSampleFree(self, gpmSample: Any) -> None:
        self._enter("nvmlGpmSampleFree")
        self._taken.pop(self._sample(gpmSample))

    def nvmlGpmMigSampleGet(self, device: Any, gpuInstanceId: int, gpmSample: Any) -> Any:
        gpu = self._cut("nvmlGpmMigSampleGet", device)
        if gpuInstanceId not in gpu.instances:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        self._taken[self._sample(gpmSample)] = gpu.instances[gpuInstanceId].utilisation
        return gpmSample

    def nvmlGpmMetricsGet(self, metricsGet: Any) -> Any:
        self._enter("nvmlGpmMetricsGet")
        if metricsGet.version != pynvml.NVML_GPM_METRICS_GET_VERSION:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
        seen = [self._taken[self._sample(sample)] for sample in (metricsGet.sample1, metricsGet.sample2)]
        for metric in metricsGet.metrics[: metricsGet.numMetrics]:
            metric.nvmlReturn, metric.value = pynvml.NVML_SUCCESS, seen[-1]
        return metricsGet

    @property
    def samples(self) -> int:
        return len(self._taken)

    # -- inside -------------------------------------------------------------------------------------------------

    @abstractmethod
    def changed(self) -> None: ...

    def _need_root(self) -> None:
        if not self.root:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)

    def _cut(self, name: str, handle: Any) -> FakeGpu:
        gpu = self._device(name, handle)
        if not gpu.mig or handle.instance is not None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return gpu

    def _create(self, gpu: FakeGpu, profile: Profile, start: int | None) -> Any:
        free = gpu.free_starts(profile)
        if not free or start not in (None, *free):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES)
        made = gpu.add(profile, free[-1] if start is None else start)
        self.changed()
        return pointer(pynvml.c_nvmlGpuInstance_t, made.address)

    def _instance(self, name: str, handle: Any) -> tuple[FakeGpu, FakeInstance]:
        return self._find(name, {one.address: (gpu, one) for gpu, one in self._all()}, handle)

    def _compute(self, name: str, handle: Any) -> tuple[FakeGpu, FakeInstance]:
        return self._find(name, {one.compute_address: (gpu, one) for gpu, one in self._all() if one.compute}, handle)

    def _find(
        self, name: str, known: dict[int, tuple[FakeGpu, FakeInstance]], handle: Any
    ) -> tuple[FakeGpu, FakeInstance]:
        address = address_of(handle)
        if address not in known:
            self._enter(name)
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        self._device(name, self._handle(known[address][0]))
        return known[address]

    def _all(self) -> list[tuple[FakeGpu, FakeInstance]]:
        return [(gpu, one) for gpu in self.gpus for one in gpu.instances.values()]

    def _sample(self, sample: Any) -> int:
        address = address_of(sample)
        if address not in self._taken:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return address


def supported(value: int | None) -> int:
    """The value; NOT_SUPPORTED for None."""
    if value is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return value


def pointer(kind: Any, address: int) -> Any:
    """A handle such as the library gives: a pointer that must not be followed."""
    return ctypes.cast(ctypes.c_void_p(address), kind)


def address_of(handle: Any) -> int:
    """The address in a handle; INVALID_ARGUMENT for anything else."""
    try:
        return ctypes.cast(handle, ctypes.c_void_p).value or 0
    except (TypeError, ctypes.ArgumentError):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT) from None


def referred(reference: Any) -> Any:
    return reference._obj  # noqa: SLF001 - ctypes has no other way


def _profile(gpu: FakeGpu, number: int) -> Profile:
    if number not in gpu.cuts:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED if not gpu.cuts else pynvml.NVML_ERROR_INVALID_ARGUMENT)
    return gpu.cuts[number].profile


def _place(value: tuple[int, int]) -> Any:
    return pynvml.c_nvmlGpuInstancePlacement_t(*value)


def _fill(count_ref: Any, array: Any, values: list[Any], made: Any) -> None:
    """Fill the caller's array, as the library does; without one, only count."""
    count = referred(count_ref)
    if array is not None:
        if count.value < len(values):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        for index, value in enumerate(values):
            array[index] = made(value)
    count.value = len(values)
