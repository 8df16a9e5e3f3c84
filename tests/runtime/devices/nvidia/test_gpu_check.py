"""The lines of the node check."""

from __future__ import annotations

import pynvml
import pytest

from pilotlight_runtime.devices.fake.fake_nvml import FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.gpu_check import GpuCheckRow, gpu_rows
from tests.runtime.devices.conftest import OpenDevices


async def rows_of(devices_of: OpenDevices, nvml: FakeNvml) -> dict[str, GpuCheckRow]:
    async with devices_of(nvml) as devices:
        return {row[0]: row for row in gpu_rows(devices)}


async def test_a_well_equipped_node(devices_of: OpenDevices) -> None:
    """Driver, GPUs, and how they are set."""
    rows = await rows_of(devices_of, FakeNvml([FakeGpu(), FakeGpu()]))

    assert [(name, ok, detail) for name, ok, detail, _ in rows.values()] == [
        ("gpu driver", True, "580.159.04"),
        ("gpus", True, "2 H100"),
        ("gpu libraries", True, "/usr/lib/libcuda.so.1"),
        ("gpu errors", True, "reported by the driver"),
        ("mig mode", True, "off"),
        ("gpu ecc", True, "on"),
        ("gpu persistence", True, "on"),
    ]


@pytest.mark.parametrize(
    ("driver", "name", "least"),
    [
        ("525.60.13", "NVIDIA H100 80GB HBM3", None),
        ("470.256.02", "NVIDIA A100-SXM4-80GB", 525),
        ("535.183.06", "NVIDIA H200", 550),
        ("565.57.01", "NVIDIA GB200", 570),
        ("575.57.08", "NVIDIA B300 SXM6 AC", 580),
    ],
)
async def test_a_driver_that_is_too_old_fails(
    devices_of: OpenDevices, driver: str, name: str, least: int | None
) -> None:
    """For CUDA 12, or for the GPU that is there."""
    nvml = FakeNvml([FakeGpu(name=name)])
    nvml.driver = driver
    _, ok, detail, _ = (await rows_of(devices_of, nvml))["gpu driver"]

    assert ok is (least is None)
    assert detail == (driver if least is None else f"{driver}; its GPUs need {least} or newer")


async def test_a_node_without_gpus_is_well(devices_of: OpenDevices) -> None:
    """The line says why there are none, for whoever expected some."""
    assert await rows_of(devices_of, FakeNvml(library=False)) == {
        "gpus": (
            "gpus",
            True,
            "none: NVML Shared Library Not Found",
            "functions that ask for a GPU find fewer than this node has",
        )
    }
    assert (await rows_of(devices_of, FakeNvml([])))["gpus"][1:3] == (True, "none: the driver shows none")


async def test_a_broken_driver_fails(devices_of: OpenDevices) -> None:
    """There are GPUs, and nobody can use them."""
    nvml = FakeNvml([FakeGpu()])
    nvml.init_error = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH

    assert (await rows_of(devices_of, nvml))["gpus"][1] is False


async def test_a_gpu_that_cannot_be_used_fails_with_its_reason(devices_of: OpenDevices) -> None:
    """One that is ill, one that is lost, but not one in MIG mode; settings that differ are counted."""
    mig = FakeGpu(uuid="GPU-1", mig=True, ecc=False)
    ill = FakeGpu(uuid="GPU-2", name="Tesla T4", mig=None, uncorrected=2, hears_xids=False)
    rows = await rows_of(devices_of, FakeNvml([mig, ill, FakeGpu(lost=True)]))

    assert rows["gpus"][1] is False
    assert rows["gpus"][2].split("; ") == [
        "1 H100, 1 T4",
        "GPU-2: 2 uncorrectable memory errors: reset it",
        "GPU 2 cannot be read: GPU is lost",
    ]
    assert rows["mig mode"][2] == "on: 1, not supported: 1"
    assert rows["gpu ecc"][2] == "off: 1, on: 1"
    assert rows["gpu errors"][2] == "GPU-2: Not Supported"
