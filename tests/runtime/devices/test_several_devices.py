"""All devices of a node as one."""

from __future__ import annotations

import asyncio

import pynvml
import pytest

from pilotlight_runtime.devices.cpu_slots import CpuDevices
from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from pilotlight_runtime.devices.several_devices import SeveralDevices
from tests.runtime.devices.conftest import OpenDevices


async def test_slices_are_listed_in_order_and_asked_of_their_own_kind(devices_of: OpenDevices) -> None:
    """A GPU's access comes from the GPUs, a slot's from the slots."""
    async with devices_of(FakeNvml([FakeGpu(uuid="GPU-1")])) as gpus:
        both = SeveralDevices(CpuDevices(2), gpus)

        assert [part.id for part in both.inventory()] == ["cpu-0", "cpu-1", "GPU-1"]
        assert both.access("cpu-1").nodes == ()
        assert both.access("GPU-1").nodes != ()
        with pytest.raises(LookupError):
            both.access("GPU-2")


async def test_a_node_without_gpus_is_as_before(devices_of: OpenDevices) -> None:
    """The same slices, nothing withdrawn, and nothing to watch."""
    async with devices_of(FakeNvml(library=False)) as gpus:
        both, cpu = SeveralDevices(CpuDevices(2), gpus), CpuDevices(2)

        assert both.inventory() == cpu.inventory()
        assert both.withdrawn() == {}
        async with asyncio.timeout(30):
            await both.watch(lambda: None)


async def test_what_one_kind_withdraws_is_withdrawn(devices_of: OpenDevices) -> None:
    """And whoever watches is told."""
    gpu, told = FakeGpu(uuid="GPU-1"), asyncio.Event()
    async with devices_of(FakeNvml([gpu])) as gpus, asyncio.TaskGroup() as group:
        both = SeveralDevices(CpuDevices(1), gpus)
        watching = group.create_task(both.watch(told.set))
        gpu.errors["nvmlDeviceGetMigMode"] = pynvml.NVML_ERROR_UNKNOWN
        async with asyncio.timeout(30):
            await told.wait()

        assert both.withdrawn() == {"GPU-1": "it cannot be read: Unknown Error"}
        watching.cancel()


def test_two_kinds_may_not_name_a_slice_alike() -> None:
    """It would be billed twice."""
    with pytest.raises(ValueError, match="same id"):
        SeveralDevices(CpuDevices(1), CpuDevices(1))
