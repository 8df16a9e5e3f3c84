"""What the tests of devices share: a host with the files of a driver, and GPUs that are made up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from pilotlight_runtime.devices.fake.fake_nvml import FakeNvml
from pilotlight_runtime.devices.nvidia.driver_libraries import Libraries
from pilotlight_runtime.devices.nvidia.driver_mounts import HostFolders
from pilotlight_runtime.devices.nvidia.nvml_devices import DriverTiming, NvmlDevices

LIBRARIES = Libraries(libcuda=Path("/usr/lib/libcuda.so.1"), env={}, read_only=())
OpenDevices = Callable[..., AbstractAsyncContextManager[NvmlDevices]]


@pytest.fixture
def host(tmp_path: Path) -> HostFolders:
    """Device nodes of two GPUs, and nothing in /sys."""
    made = HostFolders(dev=tmp_path / "dev", sys=tmp_path / "sys")
    made.dev.mkdir()
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1"):
        (made.dev / name).touch()
        (made.dev / name).chmod(0o666)
    return made


@pytest.fixture
def devices_of(host: HostFolders) -> OpenDevices:
    """The devices of a machine: `async with devices_of(nvml) as devices`."""

    @asynccontextmanager
    async def open_devices(
        nvml: FakeNvml, *, start_s: float = 60.0, look_s: float = 60.0, every_s: float = 0.01
    ) -> AsyncIterator[NvmlDevices]:
        made = NvmlDevices(
            nvml,
            host=host,
            libraries=lambda: LIBRARIES,
            timing=DriverTiming(start_s=start_s, refresh_s=look_s, every_s=every_s),
        )
        async with made as devices:
            yield devices

    return open_devices
