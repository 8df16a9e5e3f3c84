"""The judgement on a GPU."""

from __future__ import annotations

import pynvml
import pytest

from pilotlight_runtime.devices.fake.fake_nvml import GIB, FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.gpu_health import APPLICATION_XIDS, GpuReading, fault_of, read
from pilotlight_runtime.devices.nvidia.gpu_survey import take_survey


def reading_of(gpu: FakeGpu, **later: object) -> GpuReading:
    """One look at a GPU that was found well and has changed since."""
    nvml = FakeNvml([gpu])
    nvml.nvmlInit()
    [found] = take_survey(nvml).gpus
    for name, value in later.items():
        setattr(gpu, name, value)
    return read(nvml, found)


def test_a_look_tells_what_there_is() -> None:
    """Work, memory in use with the driver's own, and no errors."""
    seen = reading_of(FakeGpu(utilisation=42, used=10 * GIB, reserved=GIB))

    assert seen == GpuReading(
        utilisation=42, memory_used=11 * GIB, memory_errors=0, remap_failed=False, mig=False, processes=0
    )
    assert fault_of(seen, ()) == ""


def test_what_is_not_supported_is_no_fault() -> None:
    """A consumer's GPU has neither error correction nor spare rows."""
    seen = reading_of(FakeGpu(utilisation=None, ecc=None, uncorrected=None, remap_failed=None, mig=None, total=None))

    assert seen == GpuReading(processes=0)
    assert fault_of(seen, ()) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"lost": True}, "it cannot be read: GPU is lost"),
        (
            {"errors": {"nvmlDeviceGetMigMode": pynvml.NVML_ERROR_RESET_REQUIRED}},
            "it cannot be read: GPU requires restart",
        ),
        ({"mig": True}, ""),
        ({"remap_failed": True}, "a defective row of its memory could not be replaced"),
        ({"uncorrected": 3}, "3 uncorrectable memory errors: reset it"),
    ],
)
def test_each_fault_has_its_sentence(change: dict[str, object], why: str) -> None:
    """The operator reads it; a GPU in MIG mode is no fault."""
    assert fault_of(reading_of(FakeGpu(), **change), ()) == why


def test_a_programs_own_errors_do_not_count() -> None:
    """A tenant's bad pointer must not take a GPU away from the others."""
    assert fault_of(GpuReading(), APPLICATION_XIDS) == ""


def test_the_drivers_errors_count_until_the_agent_is_started_anew() -> None:
    """Each is named once."""
    assert fault_of(GpuReading(), (31, 79, 48, 79)) == (
        "the driver reported Xid 48, 79: reset it, then start the agent anew"
    )
