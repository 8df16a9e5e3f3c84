"""How busy MIG instances are, on GPUs that are made up."""

from __future__ import annotations

from typing import Any

import pynvml
import pytest

from pilotlight_runtime.devices.fake.fake_gpu import FakeInstance
from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia import mig
from pilotlight_runtime.devices.nvidia.gpm import Gpm


class World:
    """A GPU in MIG mode with two instances."""

    def __init__(self, **gpu: Any) -> None:
        self.gpu = FakeGpu(uuid="GPU-1", mig=True, **gpu)
        self.nvml = FakeNvml([self.gpu])
        self.nvml.nvmlInit()
        self.handle = self.nvml.nvmlDeviceGetHandleByIndex(0)
        profile = next(one for one in mig.profiles(self.nvml, self.handle) if one.key == "3g")
        self.instances = [mig.create(self.nvml, self.handle, profile, start, 4) for start in (0, 4)]
        self.gpm = Gpm(self.nvml, self.handle)

    def fake(self, uuid: str) -> FakeInstance:
        return next(one for one in self.gpu.instances.values() if one.uuid == uuid)


@pytest.mark.parametrize("gpu", [{"gpm": False}, {"name": "NVIDIA A100-SXM4-80GB"}])
def test_a_gpu_without_it_tells_nothing(gpu: dict[str, Any]) -> None:
    """Before Hopper, or with a driver that does not have it: no sample is taken."""
    world = World(**gpu)

    assert not world.gpm.is_supported
    assert world.gpm.sample(world.instances) == {}
    assert world.nvml.samples == 0


def test_a_driver_that_fails_keeps_no_sample() -> None:
    """The error goes to whoever looks after the GPU; the next look starts anew."""
    world = World()
    world.gpu.errors["nvmlGpmMigSampleGet"] = pynvml.NVML_ERROR_UNKNOWN

    with pytest.raises(pynvml.NVMLError):
        world.gpm.sample(world.instances)

    assert world.nvml.samples == 0
    world.gpu.errors.clear()
    assert world.gpm.sample(world.instances) == {}


def test_how_busy_is_known_from_the_second_look_on() -> None:
    """In percent of the time between the two, by the instance's UUID."""
    world = World()
    first, second = world.instances

    assert world.gpm.sample(world.instances) == {}
    world.fake(first.uuid).utilisation = 41.6
    world.fake(second.uuid).utilisation = 130.0

    assert world.gpm.sample(world.instances) == {first.uuid: 42, second.uuid: 100}


def test_an_instance_that_is_gone_is_forgotten() -> None:
    """And so is its sample; a new one has no value at first."""
    world = World()
    first, second = world.instances
    world.gpm.sample((first,))

    assert world.gpm.sample((second,)) == {}
    assert world.nvml.samples == 1
    assert world.gpm.sample((second,)).keys() == {second.uuid}


def test_it_gives_back_what_it_has() -> None:
    """Also when the GPU is lost."""
    world = World()
    world.gpm.sample(world.instances)
    assert world.nvml.samples == 2

    world.gpm.close()

    assert world.nvml.samples == 0
