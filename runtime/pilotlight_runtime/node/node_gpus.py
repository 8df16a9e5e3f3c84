"""The GPUs of this node. Where there is no driver, nothing that knows NVIDIA's is loaded: a tenth of an idle agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from pilotlight_core.host.config import AgentSettings
from pilotlight_runtime.devices.device_port import Devices
from pilotlight_runtime.devices.nvidia.mps import open_mps
from pilotlight_runtime.metering.usage_metering import boot_id

DRIVER = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""A loaded driver shows one of these; the last is that of the Windows Subsystem for Linux."""

HARDWARE = Path("/sys/bus/pci/devices")
NVIDIA = "0x10de"
"""Its number among the makers of PCI devices. NVML may load the driver of a GPU that nobody has used yet."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_gpus(
    settings: AgentSettings, file: Path, driver: Iterable[Path] = DRIVER, hardware: Path = HARDWARE
) -> AsyncIterator[tuple[Devices, ...]]:
    """The GPUs of this node, or those in software that its settings ask for, which `file` keeps.

    () without a loaded `driver` and without a device of NVIDIA in `hardware`.

    Raises:
        BadInput: if those cannot be read, or MPS does not work.
    """
    mps = open_mps(settings.mps_pipes)
    if not settings.fake_gpus and not any(path.exists() for path in driver) and not _has_device(hardware):
        log.info("this node offers no GPUs", why="it has no device and no loaded driver of NVIDIA")
        yield ()
        return

    from pilotlight_runtime.devices.nvidia.gpu_fitness import fitness
    from pilotlight_runtime.devices.nvidia.nvml_devices import GpuOffer, NvmlDevices

    if settings.fake_gpus:
        from pilotlight_runtime.devices.fake.fake_machine import build

        machine = build(settings.fake_gpus, node=settings.node, file=file, boot=boot_id())
        log.warning("the GPUs of this node exist in software only", spec=settings.fake_gpus)
        offer = GpuOffer(
            fake=True,
            shareable=lambda gpu: settings.share_gpus or gpu.uuid in machine.shareable,
            keep=not settings.cut_gpus,
        )
        found = NvmlDevices(machine.nvml, offer)
    else:
        offer = GpuOffer(
            shareable=lambda _: settings.share_gpus or mps is not None,
            keep=not settings.cut_gpus,
            check=fitness,
            mps=mps,
        )
        found = NvmlDevices(offer=offer)
    async with found:
        yield (found,)


def _has_device(hardware: Path) -> bool:
    """Whether a PCI device is NVIDIA's."""
    try:
        return any(path.read_text().strip() == NVIDIA for path in hardware.glob("*/vendor"))
    except OSError:  # one that has just gone, or that may not be read: ask the driver
        return True
