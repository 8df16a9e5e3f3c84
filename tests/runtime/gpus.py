"""GPUs in software, for tests of who has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pilotlight_runtime.devices.fake.fake_machine import FakeMachine, build
from pilotlight_runtime.devices.fake.fake_nvml import FakeNvml
from pilotlight_runtime.devices.nvidia.nvml_devices import DriverTiming, GpuOffer, NvmlDevices


def machine(spec: str, folder: Path, *, boot: str = "b1") -> FakeMachine:
    """A machine of a spec, whose driver answers at once."""
    made = build(spec, node="n", file=folder / "gpus.json", boot=boot)
    for gpu in made.nvml.gpus:
        gpu.latency.clear()
    return made


@asynccontextmanager
async def devices(made: FakeMachine | FakeNvml, *, every_s: float = 0.01) -> AsyncIterator[NvmlDevices]:
    """The GPUs of a machine as the agent has them."""
    nvml = made.nvml if isinstance(made, FakeMachine) else made
    shareable = made.shareable if isinstance(made, FakeMachine) else frozenset()
    async with NvmlDevices(
        nvml, GpuOffer(fake=True, shareable=lambda gpu: gpu.uuid in shareable), timing=DriverTiming(every_s=every_s)
    ) as found:
        yield found
