"""One contract for MIG in NVML and its double: `pytest -m gpu` holds the real one to it, and changes nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pynvml
import pytest

from pilotlight_core.model.devices import MigMode
from pilotlight_runtime.devices.fake.fake_gpu import FakeInstance
from pilotlight_runtime.devices.fake.fake_nvml import GIB, FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia import mig
from pilotlight_runtime.devices.nvidia.gpu_state import family_of
from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu, take_survey
from pilotlight_runtime.devices.nvidia.mig_profiles import KEYS
from pilotlight_runtime.devices.nvidia.nvml_port import Nvml
from tests.runtime.devices.nvidia.test_nvml_port import error_of

KINDS = (
    FakeGpu(name="NVIDIA H200", total=141 * GIB),
    FakeGpu(name="NVIDIA H100 80GB HBM3", mig=True),
    FakeGpu(name="NVIDIA A100-SXM4-80GB"),
    FakeGpu(name="NVIDIA A30", total=24 * GIB),
    FakeGpu(name="NVIDIA B200", total=180 * GIB),
    FakeGpu(name="Tesla T4", total=16 * GIB, mig=None),
)


class TestMigContract:
    """Read-only calls, on every GPU that there is."""

    @pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.gpu)])
    def nvml(self, request: pytest.FixtureRequest) -> Iterator[Nvml]:
        made: Nvml = pynvml if request.param == "real" else FakeNvml(list(KINDS))
        made.nvmlInit()
        yield made
        made.nvmlShutdown()

    @pytest.fixture
    def gpus(self, nvml: Nvml) -> tuple[DriverGpu, ...]:
        return take_survey(nvml).gpus

    def test_a_gpu_has_the_mode_or_not(self, nvml: Nvml, gpus: tuple[DriverGpu, ...]) -> None:
        """Who has it has profiles; who switches it online is of Hopper or later."""
        assert gpus
        for gpu in gpus:
            has_mode = mig.mode_of(nvml, gpu.handle) is not MigMode.NONE
            assert has_mode is bool(mig.profiles(nvml, gpu.handle))
            if mig.switches_online(nvml, gpu.handle):
                assert nvml.nvmlDeviceGetArchitecture(gpu.handle) >= pynvml.NVML_DEVICE_ARCH_HOPPER

    def test_profiles_are_those_of_the_catalogue(self, nvml: Nvml, gpus: tuple[DriverGpu, ...]) -> None:
        """Sizes, starts and memory as read from the driver do not contradict it: this settles what was inferred."""
        for gpu in gpus:
            found = mig.profiles(nvml, gpu.handle)
            if not found:
                continue
            family, why = family_of(gpu, found)
            assert family is not None, why
            for profile in found:
                if profile.starts is not None and profile.key in family.by_key:
                    assert profile.starts == family.by_key[profile.key].starts
                    assert profile.size == family.by_key[profile.key].size
            assert len({profile.id for profile in found}) == len(found)

    def test_numbers_that_no_profile_has_are_refused(self, nvml: Nvml, gpus: tuple[DriverGpu, ...]) -> None:
        """As invalid; those that only others have as unsupported."""
        for gpu in gpus:
            ask = nvml.nvmlDeviceGetGpuInstanceProfileInfo
            assert error_of(ask, gpu.handle, 10_000) in mig.NO_PROFILE
            found = {profile.key for profile in mig.profiles(nvml, gpu.handle)}
            for number in [number for number, key in KEYS.items() if key not in found]:
                assert error_of(ask, gpu.handle, number) in mig.NO_PROFILE

    def test_out_of_the_mode_there_are_no_instances(self, nvml: Nvml, gpus: tuple[DriverGpu, ...]) -> None:
        """To ask is no error. In the mode, they are listed, and each can be described."""
        for gpu in gpus:
            known = mig.profiles(nvml, gpu.handle)
            if mig.mode_of(nvml, gpu.handle) is MigMode.ON:
                found, _ = mig.instances(nvml, gpu.handle, known)
                assert all(one.uuid.startswith("MIG-") for one in found)
            elif known:
                array, count = (pynvml.c_nvmlGpuInstance_t * 16)(), ctypes.c_uint(16)
                nvml.nvmlDeviceGetGpuInstances(gpu.handle, known[0].id, array, ctypes.byref(count))
                assert count.value == 0

    def test_samples_are_given_and_taken_back(self, nvml: Nvml, gpus: tuple[DriverGpu, ...]) -> None:
        """Where performance is monitored; and processes are listed everywhere."""
        for gpu in gpus:
            assert all(pid > 0 for pid in mig.processes(nvml, gpu.handle))
            if nvml.nvmlGpmQueryDeviceSupport(gpu.handle).isSupportedDevice:
                nvml.nvmlGpmSampleFree(nvml.nvmlGpmSampleAlloc())


class Bench:
    """One GPU under the double, its handle, and its profiles by key."""

    def __init__(self, gpu: FakeGpu | None = None) -> None:
        self.gpu = gpu or FakeGpu(mig=True)
        self.nvml = FakeNvml([self.gpu])
        self.nvml.nvmlInit()
        self.handle: Any = self.nvml.nvmlDeviceGetHandleByIndex(0)
        self.known = {profile.key: profile for profile in mig.profiles(self.nvml, self.handle)}

    def create(self, key: str, start: int) -> FakeInstance:
        profile = self.known[key]
        assert profile.size is not None
        made = mig.create(self.nvml, self.handle, profile, start, profile.size)
        return self.gpu.instances[made.number]


def test_a_mode_that_needs_a_reset_is_pending_until_then() -> None:
    """The call raises nothing: it returns why, and the next reset does it."""
    bench = Bench(FakeGpu(name="NVIDIA A100-SXM4-80GB"))

    assert bench.nvml.nvmlDeviceSetMigMode(bench.handle, 1) == pynvml.NVML_ERROR_RESET_REQUIRED
    assert bench.nvml.nvmlDeviceGetMigMode(bench.handle) == [0, 1]
    bench.gpu.reset()
    assert bench.nvml.nvmlDeviceGetMigMode(bench.handle) == [1, 1]
    assert error_of(bench.nvml.nvmlDeviceSetMigMode, bench.handle, 2) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_a_gpu_in_use_keeps_its_mode() -> None:
    """Instances count as use, and so do processes."""
    bench = Bench()
    bench.create("3g", 4)

    assert bench.nvml.nvmlDeviceSetMigMode(bench.handle, 0) == pynvml.NVML_ERROR_IN_USE
    assert bench.nvml.nvmlDeviceGetMigMode(bench.handle) == [1, 0]


def test_a_reset_takes_all_instances() -> None:
    """Their handles are of no use any more."""
    bench = Bench()
    bench.create("1g", 6)
    found, _ = mig.instances(bench.nvml, bench.handle, bench.known.values())
    bench.gpu.reset()

    assert mig.instances(bench.nvml, bench.handle, bench.known.values()) == ([], [])
    assert error_of(bench.nvml.nvmlGpuInstanceGetInfo, found[0].handle) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert error_of(bench.nvml.nvmlDeviceGetUUID, found[0].device) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_so_many_of_a_profile_and_no_more() -> None:
    """What is left is told, and one with the media engines is left once."""
    bench = Bench()
    left = bench.nvml.nvmlDeviceGetGpuInstanceRemainingCapacity

    assert left(bench.handle, bench.known["1g.me"].id) == 1
    bench.create("1g.me", 0)
    assert left(bench.handle, bench.known["1g.me"].id) == 0
    assert left(bench.handle, bench.known["1g"].id) == 6
    with pytest.raises(mig.CannotCut, match="code 23"):
        bench.create("1g.me", 1)


def test_nobody_without_root_changes_anything() -> None:
    """Nor learns where instances could lie; their sizes are then unknown."""
    bench = Bench()
    bench.nvml.root = False

    for call in (
        lambda: bench.nvml.nvmlDeviceSetMigMode(bench.handle, 0),
        lambda: bench.create("1g", 0),
        lambda: mig.instances(bench.nvml, bench.handle, bench.known.values()),
    ):
        with pytest.raises((pynvml.NVMLError_NoPermission, mig.CannotCut)):
            call()


def test_ids_are_the_next_free_ones() -> None:
    """Not the smallest: who takes an id for a place is found out."""
    bench = Bench()
    first, second = bench.create("1g", 6), bench.create("1g", 5)
    mig.destroy(bench.nvml, mig.instances(bench.nvml, bench.handle, bench.known.values())[0][1])

    assert (first.id, second.id) == (1, 2)
    assert bench.create("1g", 6).id == 3
