"""A container on a GPU, from its bind to the bill; the GPU is made up, everything else is real."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from pilotlight_core.model.messages.node_messages import BlankSize, ContainerState, KeepBlanks, Stop
from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_core.model.units import WHOLE_DEVICE, GpuAsk
from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.driver_libraries import LIBCUDA, choose
from pilotlight_runtime.devices.nvidia.driver_mounts import HostFolders
from pilotlight_runtime.devices.nvidia.nvml_devices import DriverTiming, NvmlDevices
from tests.runtime.harness import agent, everybody

UUID = "GPU-11111111-2222-4333-8444-555555555555"
LOOK = """
import ctypes, os

def f():
    ctypes.CDLL("libcuda.so.1")
    return {
        "env": {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")},
        "nodes": sorted(name for name in os.listdir(os.environ["LD_LIBRARY_PATH"] + "/../dev")),
        "sys": sorted(os.listdir("/sys")),
        "cpus": os.path.exists("/sys/devices/system/cpu/online"),
    }
"""


@pytest.fixture
def machine() -> Iterator[Path]:
    """A folder that any user may walk through, with a driver's nodes and a library outside of the system's folders."""
    with tempfile.TemporaryDirectory(prefix="pilotlight-driver-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("dev", "lib"):
            (folder / part).mkdir()
        for node in ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"):
            (folder / "dev" / node).touch()
            (folder / "dev" / node).chmod(0o666)
        maps = Path("/proc/self/maps").read_text().split()
        library = next(word for word in maps if "/libm.so" in word or "/libm-" in word)
        (folder / "lib" / LIBCUDA).write_bytes(Path(library).read_bytes())
        yield folder


def gpus_of(nvml: FakeNvml, machine: Path) -> NvmlDevices:
    """The GPUs of that machine, whose kernel files are this one's."""
    host = HostFolders(dev=machine / "dev")
    return NvmlDevices(
        nvml, host=host, libraries=lambda: choose(None, [machine / "lib"]), timing=DriverTiming(every_s=0.02)
    )


async def test_it_sees_its_gpu_and_no_other_through_real_walls(server_url: str, tmp_path: Path, machine: Path) -> None:
    """Its nodes, the driver's library, the kernel's files that CUDA reads, and not one thing more."""
    async with (
        gpus_of(FakeNvml([FakeGpu(uuid=UUID), FakeGpu()]), machine) as gpus,
        everybody(server_url, tmp_path) as world,
        agent(world, sandbox="bubblewrap", blanks=0, gpus=gpus),
    ):
        container = await world.bind(await world.deploy(LOOK, gpu=(GpuAsk("H100"),)), UUID)

        seen = await world.run(container).output()

    assert seen == {
        "env": {"CUDA_VISIBLE_DEVICES": UUID, "LD_LIBRARY_PATH": f"{machine}/lib"},
        "nodes": ["nvidia-uvm", "nvidia0", "nvidiactl"],
        "sys": ["devices"],
        "cpus": True,
    }


async def test_it_is_metered_on_its_gpu_without_gap_or_overlap(server_url: str, tmp_path: Path, machine: Path) -> None:
    """At the GPU's price, on a device of its own, of which tenant and operator together have all the time."""
    async with (
        gpus_of(FakeNvml([FakeGpu(uuid=UUID)]), machine) as gpus,
        everybody(server_url, tmp_path) as world,
    ):
        async with agent(world, gpus=gpus):
            container = await world.bind(await world.deploy("def f(n):\n    return n\n"), UUID)
            ended = [await world.run(container, n=n).ended() for n in range(3)]
            assert (await world.command(Stop(epoch=world.epoch, container=container))).ok
            await world.report(lambda report: not report.containers)
        events = await world.usage(lambda events: _ended([e for e in events if e.slice == UUID]) == 3)

    spent = [one.spent for one in ended if one.spent is not None]
    assert [(one.price, one.ppm) for one in spent] == [("h100", WHOLE_DEVICE)] * 3
    own = [event for event in events if event.slice == UUID]
    assert {(event.device, event.price, event.ppm) for event in own} == {(UUID, "h100", WHOLE_DEVICE)}
    assert all(event.device == "cpu" for event in events if event not in own)
    assert [event.t0 for event in own[1:]] == [event.t1 for event in own[:-1]]
    busy = [event for event in own if event.state is LeaseState.BUSY]
    assert {event.container for event in busy} == {container}
    assert sum(event.t1 - event.t0 for event in busy) == sum(one.ns for one in spent)
    assert all(sum(share.ns for share in event.shares) == event.t1 - event.t0 for event in busy)


def _ended(events: list[UsageEvent]) -> int:
    """How many calls have all of their time in these."""
    return sum(bool(share.ended) for event in events for share in event.shares)


async def test_a_gpu_that_fails_keeps_its_container_and_takes_no_other(
    server_url: str, tmp_path: Path, machine: Path
) -> None:
    """It is reported for as long as somebody is on it, and then not any more."""
    gpu = FakeGpu(uuid=UUID)
    async with (
        gpus_of(FakeNvml([gpu]), machine) as gpus,
        everybody(server_url, tmp_path) as world,
        agent(world, gpus=gpus),
    ):
        version = await world.deploy("def f():\n    return 1\n")
        container = await world.bind(version, UUID)
        gpu.lost = True
        await gpus.refresh()
        assert UUID in gpus.withdrawn()

        assert await world.run(container).output() == 1
        assert any(part.id == UUID for part in world.reports[-1].slices)
        await world.drain(container)
        await world.credit(container, ContainerState.GONE)
        await world.report(lambda report: all(part.id != UUID for part in report.slices))
        assert (await world.command(world.bind_of(version, UUID))).reason == "slice_withdrawn"


async def test_a_bind_on_a_gpu_takes_the_blank_that_waits_there(server_url: str, tmp_path: Path, machine: Path) -> None:
    """It sees that GPU only. Until then the operator has paid for it, and no nanosecond is missing or counted twice."""
    async with (
        gpus_of(FakeNvml([FakeGpu(uuid=UUID), FakeGpu()]), machine) as gpus,
        everybody(server_url, tmp_path) as world,
    ):
        async with agent(world, sandbox="bubblewrap", blanks=0, gpus=gpus, gpu_blanks=2):
            other = gpus.survey.gpus[1].uuid
            await world.report(lambda report: {UUID, other} <= {part.id for part in report.slices if part.blank})
            assert world.reports[-1].blanks == {"default": 2}
            version = await world.deploy(LOOK, gpu=(GpuAsk("H100"),))

            container = await world.bind(version, UUID)

            timeline = (await world.credit(container, ContainerState.READY)).timeline
            assert "blank" in timeline
            assert "sandbox" not in timeline
            seen = await world.run(container).output()
            assert seen["env"]["CUDA_VISIBLE_DEVICES"] == UUID
            assert seen["nodes"] == ["nvidia-uvm", "nvidia0", "nvidiactl"]
            assert (await world.command(Stop(epoch=world.epoch, container=container))).ok
            await world.report(lambda report: not report.containers and report.blanks == {"default": 2})
            size = BlankSize(base="default", gpu_type="H100", memory=gpus.inventory()[0].memory, count=1)
            assert (await world.command(KeepBlanks(epoch=world.epoch, sizes=(size,)))).ok
            await world.report(lambda report: report.blanks == {"default": 1} and report.blank_sizes == (size,))

        def is_whole(events: list[UsageEvent]) -> bool:
            own = sorted((event for event in events if event.slice == UUID), key=lambda event: event.t0)
            ends = [(event.t0, before.t1) for before, event in pairwise(own)]
            return {"", "acme"} <= {event.tenant for event in own} and all(t0 == t1 for t0, t1 in ends)

        events = await world.usage(is_whole)

    own = [event for event in events if event.slice == UUID]
    states = [event.state for event in own]
    assert states.index(LeaseState.BLANK) < states.index(LeaseState.LOADING)
    assert {event.tenant for event in own if event.state is LeaseState.BLANK} == {""}
