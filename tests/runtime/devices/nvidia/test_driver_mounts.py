"""What a container on a GPU sees of the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotlight_runtime.devices.nvidia.driver_libraries import Libraries
from pilotlight_runtime.devices.nvidia.driver_mounts import HostFolders, access_to, why_unusable
from pilotlight_runtime.devices.nvidia.gpu_survey import DriverGpu
from pilotlight_runtime.sandbox.sandbox_spec import Mount
from tests.runtime.devices.conftest import LIBRARIES

GPU = DriverGpu(
    handle=None,
    uuid="GPU-1",
    name="NVIDIA L4",
    minor=1,
    pci="0000:1e:00.0",
    memory=2**34,
    mig=None,
    ecc=None,
    persistence=None,
)


def test_it_sees_its_own_nodes_and_no_others(host: HostFolders) -> None:
    """Not the other GPU, and nothing for graphics."""
    (host.dev / "dri").mkdir()

    nodes = access_to(GPU, LIBRARIES, host).nodes

    assert [node.name for node in nodes] == ["nvidiactl", "nvidia-uvm", "nvidia1", "nvidia-uvm-tools"]


def test_tools_are_shown_only_if_they_are_there(host: HostFolders) -> None:
    """A device that is missing would keep the sandbox from starting."""
    (host.dev / "nvidia-uvm-tools").unlink()

    assert "nvidia-uvm-tools" not in {node.name for node in access_to(GPU, LIBRARIES, host).nodes}


def test_it_gets_the_kernels_files_that_cuda_reads(host: HostFolders) -> None:
    """Those that this kernel has, and of all devices its own."""
    for name in ("module/nvidia", "devices/system/cpu", "bus/pci/devices/0000:1e:00.0", "bus/pci/devices/0000:1f:00.0"):
        (host.sys / name).mkdir(parents=True)

    shown = [mount.target.relative_to(host.sys) for mount in access_to(GPU, LIBRARIES, host).read_only]

    assert shown == [Path("module/nvidia"), Path("devices/system/cpu"), Path("bus/pci/devices/0000:1e:00.0")]


def test_its_variables_name_it(host: HostFolders) -> None:
    """By the id that no slot changes; with the libraries' own variables and files."""
    mount = Mount(source=Path("/opt/driver"), target=Path("/opt/driver"))
    libraries = replace(LIBRARIES, env={"LD_LIBRARY_PATH": "/opt/driver"}, read_only=(mount,))

    access = access_to(GPU, libraries, host)

    assert access.env == {
        "CUDA_VISIBLE_DEVICES": "GPU-1",
        "NVIDIA_VISIBLE_DEVICES": "GPU-1",
        "LD_LIBRARY_PATH": "/opt/driver",
    }
    assert access.read_only == (mount,)


def test_a_gpu_with_all_its_files_is_usable(host: HostFolders) -> None:
    """MIG that is off is no hindrance."""
    assert why_unusable(GPU, LIBRARIES, host) == ""
    assert why_unusable(replace(GPU, mig=False), LIBRARIES, host) == ""


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("nvidiactl", "nvidia-modprobe -c 255"),
        ("nvidia-uvm", "nvidia-modprobe -u -c 0"),
        ("nvidia1", "nvidia-modprobe -c 1"),
    ],
)
def test_a_missing_node_is_told_with_the_command_that_makes_it(host: HostFolders, name: str, command: str) -> None:
    """Nobody in a container could make it."""
    (host.dev / name).unlink()

    assert why_unusable(GPU, LIBRARIES, host) == f"there is no {host.dev / name}: {command}"


def test_a_node_that_a_container_may_not_open_is_told(host: HostFolders) -> None:
    """A container has a user of its own, and is in no group."""
    (host.dev / "nvidia1").chmod(0o660)

    assert "may not open" in why_unusable(GPU, LIBRARIES, host)


def test_missing_libraries_are_told_and_mig_mode_is_no_fault(host: HostFolders) -> None:
    """With what mends it; a GPU in MIG mode is given in instances."""
    assert why_unusable(replace(GPU, mig=True), LIBRARIES, host) == ""
    assert "libcuda.so.1" in why_unusable(GPU, Libraries(libcuda=None, env={}, read_only=()), host)
