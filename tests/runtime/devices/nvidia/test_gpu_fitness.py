"""The fitness check: a GPU is tried before its node offers it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.device_commands import Cut
from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.cuda_port import Cuda, FakeCuda
from pilotlight_runtime.devices.nvidia.driver_libraries import Libraries
from pilotlight_runtime.devices.nvidia.gpu_fitness import IN_USE, PROGRAM, NotTried, differing, fitness, trouble
from pilotlight_runtime.devices.nvidia.nvml_devices import GpuOffer, NvmlDevices

SIZE = 4096
NOWHERE = Libraries(libcuda=Path("/nowhere/libcuda.so.1"), env={"LD_LIBRARY_PATH": "/nowhere"}, read_only=())


def with_env(libraries: Libraries, **env: str) -> Libraries:
    return Libraries(libcuda=libraries.libcuda, env=env, read_only=())


def test_a_fit_device_is_left_as_it_was(cuda: Cuda) -> None:
    """Nothing stays allocated."""
    assert trouble(cuda, SIZE) == ""
    if isinstance(cuda, FakeCuda):
        assert (cuda.memory, cuda.is_open) == ({}, False)


@pytest.mark.parametrize("bit", [0, 7])
def test_a_cell_that_is_stuck_is_found_whichever_way(bit: int) -> None:
    """Patterns set and clear each bit."""
    assert "1 of 4096 bytes" in trouble(FakeCuda(stuck=(17, 0x55 ^ 1 << bit)), SIZE)
    assert differing(bytes(8), 0) == 0
    assert differing(bytes([0, 0, 1, 0, 0, 2, 0, 0]), 0) == 2


@pytest.mark.parametrize("method", ["open", "allocate", "fill", "copy", "read", "free", "close"])
def test_an_error_is_told_wherever_it_comes(method: str) -> None:
    """Unless it says that somebody has the device."""
    assert trouble(FakeCuda(errors={method: 999}), SIZE) == f"{method}: error (999)"
    for code in IN_USE:
        with pytest.raises(NotTried):
            trouble(FakeCuda(errors={method: code}), SIZE)


async def test_a_program_tries_the_device(libcuda: Libraries) -> None:
    """It is shown that one alone; what it says is the reason."""
    assert await fitness("GPU-1", libcuda) == ""
    assert "ECC_UNCORRECTABLE" in await fitness("GPU-1", with_env(libcuda, FAKE_ECC="1"))
    assert await fitness("GPU-1", with_env(libcuda, FAKE_CRASH="1")) == "a process that uses it ends with SIGABRT"


async def test_what_could_not_be_tried_is_trusted(libcuda: Libraries) -> None:
    """And told in the log: the device is full, the library is none, the program cannot be started."""
    with capture_logs() as lines:
        assert await fitness("GPU-1", with_env(libcuda, FAKE_FULL="1")) == ""
        assert await fitness("GPU-1", NOWHERE) == ""
        assert await fitness("GPU-1", NOWHERE, program=("/nowhere/program",)) == ""

    assert [line["event"] for line in lines] == ["a GPU could not be tried"] * 3


async def test_a_device_that_hangs_is_given_up() -> None:
    """Nobody waits for the end of who hangs in the driver."""
    program = (sys.executable, "-c", "import signal; signal.pause()")

    assert await fitness("GPU-1", NOWHERE, within_s=0.05, program=program) == ("the check did not end within 0.05 s")
    assert PROGRAM[-1].endswith("nvidia.gpu_fitness")


class Checks:
    """A check that is told what it says, and notes what it was asked."""

    def __init__(self, **says: str) -> None:
        self.says = says
        self.asked: list[str] = []

    async def __call__(self, visible: str, _: Libraries) -> str:
        self.asked.append(visible)
        return self.says.get(visible.replace("-", "_"), "")


async def test_a_gpu_that_fails_is_withdrawn_before_anybody_is_on_it() -> None:
    """It stays in the inventory, and nothing that NVML says later takes it back."""
    nvml, check = FakeNvml([FakeGpu(uuid="GPU-1"), FakeGpu(uuid="GPU-2")]), Checks(GPU_1="it burns")
    async with NvmlDevices(nvml, GpuOffer(fake=True, check=check)) as devices:
        assert sorted(check.asked) == ["GPU-1", "GPU-2"]
        assert devices.withdrawn() == {"GPU-1": "it has failed the fitness check: it burns"}
        assert devices.reports({})[0].withdrawn == "it has failed the fitness check: it burns"
        await devices.refresh()
        assert devices.withdrawn().keys() == {"GPU-1"}
        assert len(devices.inventory()) == 2
        assert len(check.asked) == 2


async def test_a_gpu_in_mig_mode_is_tried_on_its_first_instance() -> None:
    """Before anybody else can be on that, and once."""
    nvml, check = FakeNvml([FakeGpu(uuid="GPU-1", mig=True)]), Checks()
    async with NvmlDevices(nvml, GpuOffer(fake=True, check=check)) as devices:
        assert check.asked == []
        for start in (4, 0):
            assert (
                devices.command(Cut(epoch=1, device="GPU-1", create=(MigPlacement(start=start, profile="3g"),)), ())
                == ""
            )
            await devices.restore({})
        second, first = devices.reports({})[0].instances
        assert (first.place.start, second.place.start) == (4, 0)
        assert check.asked == [first.uuid]
    async with NvmlDevices(nvml, GpuOffer(fake=True, check=check)):
        assert check.asked == [first.uuid, second.uuid]


@pytest.mark.gpu
async def test_the_gpus_of_this_machine_are_fit() -> None:
    """The real check on real hardware, as the agent makes it."""
    async with NvmlDevices(offer=GpuOffer(check=fitness)) as devices:
        assert devices.inventory()
        assert devices.withdrawn() == {}
