"""One contract for NVML and its double: `pytest -m gpu` holds the real one to it, and changes nothing there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pynvml
import pytest

from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.gpu_survey import optional, take_survey
from pilotlight_runtime.devices.nvidia.nvml_port import Nvml

UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.gpu)])
def nvml(request: pytest.FixtureRequest) -> Nvml:
    """The library, not opened yet."""
    if request.param == "real":
        real: Nvml = pynvml
        return real
    plain = FakeGpu(name="Tesla T4", mig=None, ecc=None, persistence=None, remap_failed=None, utilisation=None)
    return FakeNvml([FakeGpu(), plain])


@pytest.fixture
def opened(nvml: Nvml) -> Iterator[Nvml]:
    nvml.nvmlInit()
    yield nvml
    nvml.nvmlShutdown()


def handles(nvml: Nvml) -> list[Any]:
    return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]


def error_of(call: Any, *arguments: Any) -> int:
    """The code of the error that a call must raise."""
    with pytest.raises(pynvml.NVMLError) as raised:
        call(*arguments)
    return int(raised.value.value)


def test_nothing_works_before_it_is_opened_and_after_it_is_shut_down(nvml: Nvml) -> None:
    """Opening it twice takes shutting it down twice."""
    assert error_of(nvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    nvml.nvmlInit()
    nvml.nvmlInit()
    nvml.nvmlShutdown()
    assert nvml.nvmlDeviceGetCount() > 0
    nvml.nvmlShutdown()

    assert error_of(nvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    assert error_of(nvml.nvmlShutdown) == pynvml.NVML_ERROR_UNINITIALIZED


def test_devices_are_counted_from_nought(opened: Nvml) -> None:
    """An index beyond them is refused, and each has an id, a name and a node of its own."""
    found = handles(opened)

    assert error_of(opened.nvmlDeviceGetHandleByIndex, len(found)) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    uuids = [opened.nvmlDeviceGetUUID(handle) for handle in found]
    assert len(set(uuids)) == len(found)
    assert all(UUID.fullmatch(uuid) for uuid in uuids)
    assert all(opened.nvmlDeviceGetName(handle) for handle in found)
    assert len({opened.nvmlDeviceGetMinorNumber(handle) for handle in found}) == len(found)
    addresses = [opened.nvmlDeviceGetPciInfo(handle) for handle in found]
    assert len({(pci.domain, pci.bus, pci.device) for pci in addresses}) == len(found)
    assert re.match(r"\d+\.\d+", opened.nvmlSystemGetDriverVersion())


def test_memory_adds_up_in_both_versions(opened: Nvml) -> None:
    """The newer one tells what is reserved from what is used."""
    for handle in handles(opened):
        old = opened.nvmlDeviceGetMemoryInfo(handle)
        new = opened.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)

        assert old.total == old.free + old.used
        assert new.total == old.total
        assert 0 < new.reserved < new.total
        assert new.reserved + new.used + new.free <= new.total


def test_what_a_gpu_does_not_have_is_said_to_be_unsupported(opened: Nvml) -> None:
    """Every other answer has its range."""
    uncorrected = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
    checks: list[tuple[Any, tuple[int, ...], Any]] = [
        (opened.nvmlDeviceGetMigMode, (), lambda modes: len(modes) == 2 and set(modes) <= {0, 1}),
        (opened.nvmlDeviceGetEccMode, (), lambda modes: len(modes) == 2 and set(modes) <= {0, 1}),
        (opened.nvmlDeviceGetPersistenceMode, (), lambda mode: mode in (0, 1)),
        (opened.nvmlDeviceGetUtilizationRates, (), lambda rates: 0 <= rates.gpu <= 100),
        (opened.nvmlDeviceGetTotalEccErrors, uncorrected, lambda count: count >= 0),
        (opened.nvmlDeviceGetRemappedRows, (), lambda rows: len(rows) == 4 and rows[3] in (0, 1)),
    ]
    for handle in handles(opened):
        for call, arguments, in_range in checks:
            answer = optional(call, handle, *arguments)  # raises any other error
            assert answer is None or in_range(answer), call


def test_a_queue_without_events_says_so_at_once(opened: Nvml) -> None:
    """It does not block when it is asked not to."""
    events = opened.nvmlEventSetCreate()
    for handle in handles(opened):
        optional(opened.nvmlDeviceRegisterEvents, handle, pynvml.nvmlEventTypeXidCriticalError, events)

    assert error_of(opened.nvmlEventSetWait_v2, events, 0) == pynvml.NVML_ERROR_TIMEOUT
    opened.nvmlEventSetFree(events)


def test_a_survey_reads_all_of_them(opened: Nvml) -> None:
    """What the agent offers is what there is."""
    survey = take_survey(opened)

    assert len(survey.gpus) == opened.nvmlDeviceGetCount()
    assert survey.unreadable == ()
    assert all(gpu.memory > 2**30 for gpu in survey.gpus)
    assert all(re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0", gpu.pci) for gpu in survey.gpus)


def test_the_double_refuses_what_the_library_refuses() -> None:
    """Handles of an earlier session, event sets that were freed, calls that are wrong."""
    nvml = FakeNvml([FakeGpu()])
    nvml.nvmlInit()
    [old] = handles(nvml)
    events = nvml.nvmlEventSetCreate()
    nvml.nvmlEventSetFree(events)

    assert error_of(nvml.nvmlEventSetWait_v2, events, 0) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert error_of(nvml.nvmlEventSetWait_v2, events, -1) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert error_of(nvml.nvmlDeviceGetTotalEccErrors, old, 9, 9) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert error_of(nvml.nvmlDeviceGetMemoryInfo, old, 1) == pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    assert error_of(nvml.nvmlDeviceGetName, "0") == pynvml.NVML_ERROR_INVALID_ARGUMENT
    nvml.nvmlShutdown()
    nvml.nvmlInit()
    assert error_of(nvml.nvmlDeviceGetName, old) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_the_double_fails_as_it_is_told() -> None:
    """Each fault of its script is an error of the library."""
    gpu = FakeGpu()
    nvml = FakeNvml([gpu])
    nvml.nvmlInit()
    [handle] = handles(nvml)

    nvml.missing = {"nvmlDeviceGetName"}
    assert error_of(nvml.nvmlDeviceGetName, handle) == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    nvml.missing = set()
    gpu.errors["nvmlDeviceGetName"] = pynvml.NVML_ERROR_UNKNOWN
    assert error_of(nvml.nvmlDeviceGetName, handle) == pynvml.NVML_ERROR_UNKNOWN
    gpu.lost = True
    assert error_of(nvml.nvmlDeviceGetUUID, handle) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert error_of(nvml.nvmlDeviceGetHandleByIndex, 0) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert error_of(FakeNvml(library=False).nvmlInit) == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    nvml.init_error = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    assert error_of(nvml.nvmlInit) == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
