"""Shares of a GPU within the bounds of MPS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.fake.fake_nvml import GIB, FakeGpu, FakeNvml
from pilotlight_runtime.devices.nvidia.driver_mounts import HostFolders
from pilotlight_runtime.devices.nvidia.mps import PID_FILE, Mps, open_mps
from pilotlight_runtime.devices.nvidia.nvml_devices import GpuOffer, NvmlDevices
from tests.runtime.devices.conftest import LIBRARIES


def share(ppm: int, memory: int) -> SliceReport:
    return SliceReport(id="g:1/1000~c", kind=SliceKind.SHARE, device="g", ppm=ppm, price="t4", memory=memory)


@pytest.mark.parametrize(
    ("ppm", "memory", "percent", "limit"),
    [(250_000, 4 * GIB, "25", "0=4096M"), (15_625, GIB // 4, "1", "0=256M"), (WHOLE_DEVICE, GIB, "100", "0=1024M")],
)
def test_a_share_is_bounded_by_what_cuda_reads(ppm: int, memory: int, percent: str, limit: str) -> None:
    """Its memory in whole MiB and its part of the processors in whole percent, never more than it pays for."""
    limits = Mps(pipes=Path("/pipes")).limits(share(ppm, memory))

    assert limits == {
        "CUDA_MPS_PIPE_DIRECTORY": "/pipes",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": limit,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": percent,
    }


async def test_only_shares_are_bounded(host: HostFolders, tmp_path: Path) -> None:
    """A container on one sees the pipes; one that has the whole GPU does not, and nothing bounds it."""
    nvml, mps = FakeNvml([FakeGpu(uuid="GPU-1")]), Mps(pipes=tmp_path)
    devices = NvmlDevices(nvml, GpuOffer(shareable=lambda _: True, mps=mps), host=host, libraries=lambda: LIBRARIES)
    async with devices:
        whole, part = devices.access("GPU-1"), devices.access("GPU-1:250/1000~c1")

    assert part.env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == f"0={(80 * GIB - GIB // 2) // 4 // 2**20}M"
    assert part.env["CUDA_VISIBLE_DEVICES"] == whole.env["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert [mount.source for mount in part.read_only if mount not in whole.read_only] == [tmp_path]
    assert not any(name.startswith("CUDA_MPS") for name in whole.env)


def test_a_daemon_that_is_not_at_work_is_told(tmp_path: Path) -> None:
    """CUDA itself would go on without it, unbounded."""
    assert open_mps("") is None
    with pytest.raises(BadInput, match="no MPS control daemon is at work"):
        open_mps(str(tmp_path))
    (tmp_path / PID_FILE).write_text("999999999")
    with pytest.raises(BadInput, match="nvidia-cuda-mps-control -d"):
        open_mps(str(tmp_path))
    (tmp_path / PID_FILE).write_text(f"{os.getpid()}\n")
    assert open_mps(str(tmp_path)) == Mps(pipes=tmp_path)
