"""The GPUs of a node while they are cut: one change at a time each, slow drivers, what MIG instances are doing."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pynvml

from pilotlight_core.model.devices import DeviceReport, MigPlacement
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.nvml_devices import DriverTiming, GpuOffer, NvmlDevices

HALVES = (MigPlacement(start=0, profile="3g"), MigPlacement(start=4, profile="3g"))


def cut(device: str, *create: MigPlacement, destroy: tuple[MigPlacement, ...] = ()) -> Cut:
    return Cut(epoch=1, device=device, destroy=destroy, create=create)


async def settled(devices: NvmlDevices) -> list[DeviceReport]:
    """How they are when all that was commanded has been done."""
    news = asyncio.Event()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        watching = group.create_task(devices.watch(news.set))
        while any(report.changing for report in devices.reports({})):
            news.clear()
            await news.wait()
        watching.cancel()
    return devices.reports({})


def places(report: DeviceReport) -> list[str]:
    return [str(one.place) for one in report.instances]


async def test_a_gpu_is_changed_by_one_command_at_a_time() -> None:
    """The second is refused; another GPU's is done after the first."""
    slow = FakeGpu(uuid="GPU-1", mig=True, latency={"nvmlDeviceCreateGpuInstanceWithPlacement": 0.05})
    nvml = FakeNvml([slow, FakeGpu(uuid="GPU-2", mig=True)])
    async with NvmlDevices(nvml, GpuOffer(fake=True), timing=DriverTiming(every_s=0.01)) as devices:
        assert devices.command(cut("GPU-1", *HALVES), ()) == ""
        assert devices.command(cut("GPU-1", *HALVES), ()) == "changing"
        assert devices.command(SwitchMig(epoch=1, device="GPU-1", on=False), ()) == "changing"
        assert devices.command(cut("GPU-2", HALVES[0]), ()) == ""
        assert devices.layouts() == {}
        first, second = await settled(devices)

        assert (places(first), places(second)) == (["3g@0", "3g@4"], ["3g@0"])
        assert devices.layouts()["GPU-1"].places == HALVES


async def test_what_goes_is_not_offered_while_it_goes() -> None:
    """Its neighbour is."""
    async with NvmlDevices(
        FakeNvml([FakeGpu(uuid="GPU-1", mig=True)]), GpuOffer(fake=True), timing=DriverTiming(every_s=0.01)
    ) as devices:
        devices.command(cut("GPU-1", *HALVES), ())
        await settled(devices)
        assert devices.command(cut("GPU-1", destroy=(HALVES[1],)), ["GPU-1:3g@0"]) == ""

        assert [part.id for part in devices.inventory()] == ["GPU-1:3g@0"]
        await settled(devices)
        assert [part.id for part in devices.inventory()] == ["GPU-1:3g@0"]


async def test_what_the_driver_refuses_is_told() -> None:
    """What was done before stays; the next command begins with a clean sheet."""
    gpu = FakeGpu(uuid="GPU-1", mig=True)
    async with NvmlDevices(FakeNvml([gpu]), GpuOffer(fake=True), timing=DriverTiming(every_s=0.01)) as devices:
        gpu.errors["nvmlDeviceCreateGpuInstanceWithPlacement"] = pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES
        devices.command(cut("GPU-1", *HALVES), ())
        (report,) = await settled(devices)
        assert "3g.40gb at 0 could not be made" in report.refused
        gpu.errors.clear()
        devices.command(cut("GPU-1", *HALVES), ())
        (report,) = await settled(devices)
        assert (report.refused, places(report)) == ("", ["3g@0", "3g@4"])


async def test_a_change_that_does_not_end_is_seen_when_the_driver_answers_again() -> None:
    """Until then the GPU takes nothing and no command; the driver has done it all the same."""
    nvml = FakeNvml([FakeGpu(uuid="GPU-1", mig=True)])
    async with NvmlDevices(nvml, GpuOffer(fake=True), timing=DriverTiming(every_s=0.01, change_s=0.05)) as devices:
        devices.timing = replace(
            devices.timing, refresh_s=0.05
        )  # not before: a busy machine takes longer over what is well
        nvml.hang()
        assert devices.command(cut("GPU-1", HALVES[0]), ()) == ""
        await devices.restore({})
        assert await devices.refresh()
        assert "has not answered" in devices.withdrawn()["GPU-1"]
        assert devices.command(cut("GPU-1", HALVES[1]), ()) == "changing"
        nvml.release()
        async with asyncio.timeout(30):
            while devices.reports({})[0].changing or devices.withdrawn():
                await devices.refresh()

        assert places(devices.reports({})[0]) == ["3g@0"]


async def test_a_mode_that_was_switched_by_hand_is_noticed() -> None:
    """And with it the instances."""
    gpu = FakeGpu(uuid="GPU-1")
    async with NvmlDevices(FakeNvml([gpu]), GpuOffer(fake=True)) as devices:
        assert gpu.device.family is not None
        gpu.mig = True
        gpu.add(gpu.device.family.by_key["2g"], 2).compute = True
        await devices.refresh()

        assert [part.id for part in devices.inventory()] == ["GPU-1:2g@2"]


async def test_instances_tell_how_busy_they_are_from_the_second_look_on() -> None:
    """By performance monitoring, since a GPU in MIG mode has no counter; every sample is given back."""
    gpu = FakeGpu(uuid="GPU-1", mig=True)
    nvml = FakeNvml([gpu])
    async with NvmlDevices(nvml, GpuOffer(fake=True), timing=DriverTiming(every_s=3_600)) as devices:
        devices.command(cut("GPU-1", *HALVES), ())
        await devices.restore({})
        for one, busy in zip(gpu.instances.values(), (37.4, 120.0), strict=True):
            one.utilisation = busy
        await devices.refresh()
        assert [one.utilisation for one in devices.reports({})[0].instances] == [None, None]
        await devices.refresh()
        report = devices.reports({})[0]
        assert (report.utilisation, [one.utilisation for one in report.instances]) == (None, [37, 100])
        devices.command(cut("GPU-1", destroy=(HALVES[1],)), ())
        await devices.restore({})
        await devices.refresh()
        assert nvml.samples == 1
    assert nvml.samples == 0


async def test_before_hopper_instances_do_not_tell() -> None:
    """Nor does anything fail for it."""
    gpu = FakeGpu(uuid="GPU-1", name="NVIDIA A100-SXM4-80GB", mig=True)
    nvml = FakeNvml([gpu])
    async with NvmlDevices(nvml, GpuOffer(fake=True), timing=DriverTiming(every_s=3_600)) as devices:
        devices.command(cut("GPU-1", HALVES[0]), ())
        await devices.restore({})
        await devices.refresh()
        await devices.refresh()
        assert [one.utilisation for one in devices.reports({})[0].instances] == [None]
    assert nvml.samples == 0
