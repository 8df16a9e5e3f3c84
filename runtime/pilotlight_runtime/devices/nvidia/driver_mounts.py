"""What code in a sandbox must see of the host to use one GPU, and no other.

Device nodes    the driver's own (`nvidiactl`, `nvidia-uvm`) and the GPU's. Capabilities    of a MIG instance, the two
device nodes below `nvidia-caps` that open it and its compute instance. Kernel files    the few folders of /sys without
which `cuInit` fails with error 304; all of /sys would show the host. Libraries       see `driver_libraries`.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.devices.nvidia.driver_libraries import Libraries
from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu
from pilotlight_runtime.devices.nvidia.mig import DriverInstance
from pilotlight_runtime.sandbox.sandbox_spec import Mount

NODES = {"nvidiactl": "nvidia-modprobe -c 255", "nvidia-uvm": "nvidia-modprobe -u -c 0"}
"""The driver's own -> the command that makes each."""
OPTIONAL_NODES = ("nvidia-uvm-tools",)
KERNEL_FILES = ("module/nvidia", "module/nvidia_uvm", "devices/system/cpu", "devices/system/node")
MINORS = "driver/nvidia-caps/mig-minors"
EVERYBODY = stat.S_IROTH | stat.S_IWOTH


@dataclass(frozen=True, kw_only=True)
class HostFolders:
    dev: Path = Path("/dev")
    sys: Path = Path("/sys")
    proc: Path = Path("/proc")


def access_to(
    gpu: DriverGpu, libraries: Libraries, host: HostFolders, instance: DriverInstance | None = None, *more: DriverGpu
) -> DeviceAccess:
    """What a container on this GPU must see: on one MIG instance of it, or on `more` GPUs too.

    Raises:
        LookupError: if the kernel does not name the device nodes that open the instance.
    """
    gpus = (gpu, *more)
    optional = [path for name in OPTIONAL_NODES if (path := host.dev / name).exists()]
    files = [*(host.sys / name for name in KERNEL_FILES), *(host.sys / "bus/pci/devices" / each.pci for each in gpus)]
    doors = capabilities(gpu, instance, host) if instance is not None else ()
    shown = instance.uuid if instance is not None else ",".join(each.uuid for each in gpus)
    nodes = dict.fromkeys(node for each in gpus for node in _nodes(each, host))
    return DeviceAccess(
        nodes=(*nodes, *doors, *optional),
        read_only=(*libraries.read_only, *(Mount(source=path, target=path) for path in files if path.exists())),
        env={"CUDA_VISIBLE_DEVICES": shown, "NVIDIA_VISIBLE_DEVICES": shown, **libraries.env},
    )


def capabilities(gpu: DriverGpu, instance: DriverInstance, host: HostFolders) -> tuple[Path, Path]:
    """The device nodes that open a MIG instance, by the kernel's table; raises LookupError."""
    table = (host.proc / MINORS).read_text()
    minors = dict(line.rsplit(maxsplit=1) for line in table.splitlines() if line.strip())
    inside = f"gpu{gpu.minor}/gi{instance.number}"
    names = (f"{inside}/access", f"{inside}/ci{instance.compute_number}/access")
    first, second = (host.dev / "nvidia-caps" / f"nvidia-cap{minors[name]}" for name in names)
    return first, second


def why_unusable(gpu: DriverGpu, libraries: Libraries, host: HostFolders) -> str:
    """Why no container could use this GPU, and what mends it; "" if one can."""
    for node in _nodes(gpu, host):
        if not node.exists():
            return f"there is no {node}: {NODES.get(node.name, f'nvidia-modprobe -c {gpu.minor}')}"
        if node.stat().st_mode & EVERYBODY != EVERYBODY:
            return f"the user of a container may not open {node}: chmod a+rw it"
    if libraries.libcuda is None:
        return "the driver's libcuda.so.1 is nowhere to be found: install the driver's compute libraries"
    return ""


def _nodes(gpu: DriverGpu, host: HostFolders) -> tuple[Path, ...]:
    return (*(host.dev / name for name in NODES), host.dev / f"nvidia{gpu.minor}")
