"""What code in a sandbox must see of the host to use one GPU, and no other.

Device nodes    the driver's two doors (`nvidiactl`, `nvidia-uvm`) and the GPU's own; the others' are not there.
Kernel files    `cuInit` looks in /sys whether the modules are loaded, and where the GPU and the processors are. Without
                /sys it fails with error 304, and all of /sys would show the host; so it gets the few folders it reads.
Libraries       see `libraries`.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from pilotlight_runtime.devices.libraries import Libraries
from pilotlight_runtime.devices.port import Access
from pilotlight_runtime.devices.survey import Gpu
from pilotlight_runtime.sandbox.profile import Mount

NODES = {"nvidiactl": "nvidia-modprobe -c 255", "nvidia-uvm": "nvidia-modprobe -u -c 0"}
"""The driver's own, and what makes each where the driver's package does not."""
OPTIONAL_NODES = ("nvidia-uvm-tools",)
KERNEL_FILES = ("module/nvidia", "module/nvidia_uvm", "devices/system/cpu", "devices/system/node")
EVERYBODY = stat.S_IROTH | stat.S_IWOTH


@dataclass(frozen=True, kw_only=True)
class HostFolders:
    """Where devices and the kernel's files are; elsewhere in tests only."""

    dev: Path = Path("/dev")
    sys: Path = Path("/sys")


def access_to(gpu: Gpu, libraries: Libraries, host: HostFolders) -> Access:
    """What a container on this GPU must see."""
    optional = [path for name in OPTIONAL_NODES if (path := host.dev / name).exists()]
    files = [*(host.sys / name for name in KERNEL_FILES), host.sys / "bus/pci/devices" / gpu.pci]
    return Access(
        nodes=(*_nodes(gpu, host), *optional),
        read_only=(*libraries.read_only, *(Mount(source=path, target=path) for path in files if path.exists())),
        env={"CUDA_VISIBLE_DEVICES": gpu.uuid, "NVIDIA_VISIBLE_DEVICES": gpu.uuid, **libraries.env},
    )


def why_unusable(gpu: Gpu, libraries: Libraries, host: HostFolders) -> str:
    """Why no container could use this GPU, and what mends it; "" if one can."""
    if gpu.mig:
        return "it is in MIG mode, and MIG instances are not offered yet: nvidia-smi -mig 0"
    for node in _nodes(gpu, host):
        if not node.exists():
            return f"there is no {node}: {NODES.get(node.name, f'nvidia-modprobe -c {gpu.minor}')}"
        if node.stat().st_mode & EVERYBODY != EVERYBODY:
            return f"the user of a container may not open {node}: chmod a+rw it"
    if libraries.libcuda is None:
        return "the driver's libcuda.so.1 is nowhere to be found: install the driver's compute libraries"
    return ""


def _nodes(gpu: Gpu, host: HostFolders) -> tuple[Path, ...]:
    return (*(host.dev / name for name in NODES), host.dev / f"nvidia{gpu.minor}")
