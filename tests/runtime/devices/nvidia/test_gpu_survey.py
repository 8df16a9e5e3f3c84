"""Which GPUs there are."""

from __future__ import annotations

import pynvml
import pytest

from pilotlight_runtime.devices.fake.fake_nvml import GIB, FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.gpu_survey import Survey, take_survey


def survey_of(*gpus: FakeGpu, missing: tuple[str, ...] = ()) -> Survey:
    nvml = FakeNvml(list(gpus))
    nvml.missing = set(missing)
    nvml.nvmlInit()
    return take_survey(nvml)


def test_a_gpu_is_described_whole() -> None:
    """With the memory that programs may have, and its address as the kernel writes it."""
    [gpu] = survey_of(FakeGpu(uuid="GPU-1", minor=3, total=80 * GIB, reserved=GIB)).gpus

    assert (gpu.uuid, gpu.minor, gpu.pci, gpu.memory) == ("GPU-1", 3, "0000:1e:00.0", 79 * GIB)
    assert (gpu.mig, gpu.ecc, gpu.persistence) == (False, True, True)


def test_what_a_gpu_does_not_have_is_none() -> None:
    """A T4 has no MIG; a board with shared memory does not say how much it has."""
    [gpu] = survey_of(FakeGpu(mig=None, ecc=None, persistence=None, total=None)).gpus

    assert (gpu.mig, gpu.ecc, gpu.persistence, gpu.memory) == (None, None, None, 0)


def test_an_older_driver_does_not_tell_what_is_reserved() -> None:
    """Then all of the memory counts as usable."""
    [gpu] = survey_of(FakeGpu(total=80 * GIB), missing=("nvmlDeviceGetMemoryInfo_v2",)).gpus

    assert gpu.memory == 80 * GIB


@pytest.mark.parametrize("function", ["nvmlDeviceGetUUID", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetMigMode"])
def test_one_that_cannot_be_read_does_not_hide_the_others(function: str) -> None:
    """It is told with the driver's words."""
    broken = FakeGpu(errors={function: pynvml.NVML_ERROR_UNKNOWN})
    survey = survey_of(broken, FakeGpu(uuid="GPU-2"), FakeGpu(lost=True))

    assert [gpu.uuid for gpu in survey.gpus] == ["GPU-2"]
    assert survey.unreadable == ("GPU 0 cannot be read: Unknown Error", "GPU 2 cannot be read: GPU is lost")
