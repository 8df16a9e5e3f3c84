"""The GPUs of a node."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pynvml
import pytest
from structlog.testing import capture_logs

from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.fake.fake_nvml import GIB, FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.driver_libraries import find_libraries
from pilotlight_runtime.devices.nvidia.driver_mounts import HostFolders
from pilotlight_runtime.devices.nvidia.nvml_devices import NvmlDevices
from tests.runtime.devices.conftest import OpenDevices


async def told(devices: NvmlDevices) -> list[tuple[str, str]]:
    """What it says in the log when it begins to watch: level and sentence."""
    with capture_logs() as lines:
        watching = asyncio.create_task(devices.watch(lambda: None))
        await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])
    return [(line["log_level"], line["event"]) for line in lines]


async def test_each_gpu_is_a_whole_device(devices_of: OpenDevices) -> None:
    """By its own id, with its price, its type as users ask for it, and the memory that they get."""
    one = FakeGpu(uuid="GPU-1")
    two = FakeGpu(uuid="GPU-2", name="NVIDIA A100-SXM4-40GB", total=40 * GIB, reserved=GIB)
    async with devices_of(FakeNvml([one, two])) as devices:
        first, second = devices.inventory()

        assert first == SliceReport(
            id="GPU-1",
            kind=SliceKind.GPU,
            device="GPU-1",
            ppm=WHOLE_DEVICE,
            price="h100",
            gpu_type="H100",
            memory=80 * GIB - GIB // 2,
        )
        assert (second.gpu_type, second.price, second.memory) == ("A100-40GB", "a100", 39 * GIB)
        assert devices.access("GPU-2").env["CUDA_VISIBLE_DEVICES"] == "GPU-2"
        assert await told(devices) == [("info", "this node offers GPUs")]


@pytest.mark.parametrize("error", [None, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
async def test_a_node_without_a_driver_has_no_gpus(devices_of: OpenDevices, error: int | None) -> None:
    """It says so once, and it is no error."""
    nvml = FakeNvml(library=error is not None)
    nvml.init_error = error
    async with devices_of(nvml) as devices:
        assert devices.inventory() == []
        assert (bool(devices.absent), devices.broken) == (True, False)
        assert await told(devices) == [("info", "this node offers no GPUs")]


async def test_a_driver_without_gpus_is_shut_down_again(devices_of: OpenDevices) -> None:
    """A machine whose GPUs were taken out."""
    nvml = FakeNvml([])
    async with devices_of(nvml) as devices:
        assert (devices.inventory(), devices.absent) == ([], "")
        assert await told(devices) == [("info", "this node offers no GPUs")]
    assert not nvml.is_open


async def test_a_broken_driver_is_a_warning(devices_of: OpenDevices) -> None:
    """As after an update of the driver without a restart."""
    nvml = FakeNvml([FakeGpu()])
    nvml.init_error = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    async with devices_of(nvml) as devices:
        assert devices.inventory() == []
        assert devices.broken
        assert await told(devices) == [("warning", "this node offers no GPUs")]


async def test_a_driver_that_fails_while_it_is_read_is_left_closed(devices_of: OpenDevices) -> None:
    """Nothing keeps its GPUs open."""
    nvml = FakeNvml([FakeGpu()])
    nvml.missing = {"nvmlDeviceGetCount"}
    async with devices_of(nvml) as devices:
        assert devices.broken
    assert not nvml.is_open


async def test_a_driver_that_hangs_at_the_start_does_not_hold_up_the_agent(devices_of: OpenDevices) -> None:
    """It is given so long, and then there are no GPUs; ending waits for nothing."""
    nvml = FakeNvml([FakeGpu()])
    nvml.hang()
    async with asyncio.timeout(30), devices_of(nvml, start_s=0.02) as devices:
        assert devices.inventory() == []
        assert devices.broken
        assert "has not answered" in devices.absent
    nvml.release()


async def test_a_gpu_in_mig_mode_is_not_offered_whole(devices_of: OpenDevices) -> None:
    """It is given in instances, of which it has none yet; the others are offered."""
    async with devices_of(FakeNvml([FakeGpu(uuid="GPU-1", mig=True), FakeGpu(uuid="GPU-2")])) as devices:
        assert [part.id for part in devices.inventory()] == ["GPU-2"]
        assert devices.not_offered == {}
        with pytest.raises(LookupError):
            devices.access("GPU-1")


async def test_a_gpu_that_cannot_be_read_is_not_offered(devices_of: OpenDevices) -> None:
    """Nor does it hide the others."""
    async with devices_of(FakeNvml([FakeGpu(lost=True), FakeGpu(uuid="GPU-2")])) as devices:
        assert [part.id for part in devices.inventory()] == ["GPU-2"]
        assert ("warning", "a GPU is not offered") in await told(devices)


async def test_one_that_is_ill_from_the_start_is_withdrawn(devices_of: OpenDevices) -> None:
    """It is there, and metered, but takes nobody."""
    async with devices_of(FakeNvml([FakeGpu(uuid="GPU-1", uncorrected=1)])) as devices:
        assert [part.id for part in devices.inventory()] == ["GPU-1"]
        assert devices.withdrawn() == {"GPU-1": "1 uncorrectable memory errors: reset it"}
        assert ("warning", "a GPU takes no new container") in await told(devices)


async def test_a_lost_gpu_is_withdrawn_alone(devices_of: OpenDevices) -> None:
    """Its neighbour still takes containers, and the inventory stays, since it is metered."""
    one, two = FakeGpu(uuid="GPU-1"), FakeGpu(uuid="GPU-2")
    async with devices_of(FakeNvml([one, two])) as devices:
        before = devices.inventory()
        one.lost = True

        assert await devices.refresh()
        assert devices.withdrawn() == {"GPU-1": "it cannot be read: GPU is lost"}
        assert devices.inventory() == before
        assert not await devices.refresh()


async def test_a_grave_error_withdraws_for_good_and_a_programs_own_does_not(devices_of: OpenDevices) -> None:
    """Nothing that is read later takes it back."""
    gpu = FakeGpu(uuid="GPU-1")
    nvml = FakeNvml([gpu])
    async with devices_of(nvml) as devices:
        nvml.report_xid(gpu, 31)
        assert not await devices.refresh()
        nvml.report_xid(gpu, 79)
        assert await devices.refresh()
        assert not await devices.refresh()

        assert "Xid 79" in devices.withdrawn()["GPU-1"]
        assert devices.statistics()[0].xids == (31, 79)


async def test_a_driver_that_hangs_withdraws_all_until_it_answers(devices_of: OpenDevices) -> None:
    """Each look is bounded, and ending is too."""
    nvml = FakeNvml([FakeGpu(uuid="GPU-1")])
    async with devices_of(nvml) as devices:
        devices.timing = replace(
            devices.timing, refresh_s=0.02
        )  # not before: a busy machine takes longer over what is well
        nvml.hang()
        assert await devices.refresh()
        assert "has not answered" in devices.withdrawn()["GPU-1"]
        assert not await devices.refresh()

        nvml.release()
        async with asyncio.timeout(30):
            while devices.withdrawn():
                await devices.refresh()
        nvml.hang()
    assert nvml.is_open  # it could not be shut down, and nobody waits for it
    nvml.release()


async def test_watching_tells_each_change(devices_of: OpenDevices) -> None:
    """Out of service, and back."""
    gpu, news = FakeGpu(uuid="GPU-1"), asyncio.Event()
    async with devices_of(FakeNvml([gpu])) as devices, asyncio.TaskGroup() as group:
        with capture_logs() as lines:
            watching = group.create_task(devices.watch(news.set))
            for errors in ({"nvmlDeviceGetMigMode": pynvml.NVML_ERROR_UNKNOWN}, {}):
                gpu.errors = errors
                async with asyncio.timeout(30):
                    await news.wait()
                news.clear()
            watching.cancel()

    assert [line["event"] for line in lines] == [
        "this node offers GPUs",
        "a GPU takes no new container",
        "a GPU is offered again",
    ]


async def test_statistics_are_those_of_the_last_look(devices_of: OpenDevices) -> None:
    """How busy it is, and how full."""
    gpu = FakeGpu(uuid="GPU-1")
    async with devices_of(FakeNvml([gpu])) as devices:
        gpu.utilisation, gpu.used = 97, 40 * GIB
        await devices.refresh()
        [now] = devices.statistics()

        assert (now.uuid, now.type, now.withdrawn) == ("GPU-1", "H100", "")
        assert (now.reading.utilisation, now.reading.memory_used) == (97, 40 * GIB + GIB // 2)


async def test_nvml_is_opened_once_and_closed(devices_of: OpenDevices) -> None:
    """Opening it anew for each look would cost seconds on a node where nobody else holds the driver."""
    nvml = FakeNvml([FakeGpu(), FakeGpu()])
    async with devices_of(nvml) as devices:
        for _ in range(3):
            await devices.refresh()
    assert nvml.calls.count("nvmlInit") == nvml.calls.count("nvmlShutdown") == 1
    assert nvml.calls.count("nvmlDeviceGetHandleByIndex") == 2
    assert not nvml.is_open


@pytest.mark.gpu
async def test_the_gpus_of_this_machine_can_be_offered() -> None:
    """All of it on real hardware: found, with libraries and nodes, well, and read a second time."""
    async with NvmlDevices() as devices:
        assert devices.absent == ""
        assert devices.not_offered == {}
        assert devices.inventory()
        assert devices.withdrawn() == {}
        assert not await devices.refresh()
        for part in devices.inventory():
            access = devices.access(part.id)
            assert part.memory > GIB
            assert all(node.is_char_device() for node in access.nodes)
            assert len(access.nodes) >= 3
        assert all(one.reading.memory_used is not None for one in devices.statistics())


async def test_this_machine_is_a_node_with_or_without_gpus() -> None:
    """The real library, or none: it never raises."""
    async with asyncio.timeout(60), NvmlDevices(host=HostFolders(), libraries=find_libraries) as devices:
        assert devices.absent or devices.survey.driver
