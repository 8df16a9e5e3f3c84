"""What a container is given at its start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilotlight_core.host.blobs import BlobMissing, MemoryBlobs
from pilotlight_runtime.containers.blank_pool import BlankPool
from pilotlight_runtime.containers.file_cache import FileCache
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.containers.staging import Stager, TrustedKey
from pilotlight_runtime.containers.version_files import StoredFiles
from pilotlight_runtime.devices.cpu_slots import CpuDevices
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from tests.builders.nodes import bind, gpu_slice
from tests.builders.specs import function_spec, manifest
from tests.runtime.containers.fake_guests import BASE_NAME, greeting_guest, starter_of
from tests.waiting import until

MIB = 1 << 20
GPU = gpu_slice("GPU-1")


class CpusAndOneGpu(CpuDevices):
    """CPU slots, and a GPU with one device node."""

    def access(self, slice_id: str) -> DeviceAccess:
        if slice_id == GPU.id:
            return DeviceAccess(nodes=(Path("/dev/nvidia0"),), env={"CUDA_VISIBLE_DEVICES": GPU.id})
        return super().access(slice_id)


class Node:
    """A node with one blank, whose blob store is empty."""

    cpu_slots = 1
    any_starting = False

    def __init__(self, folder: Path, group: asyncio.TaskGroup) -> None:
        self.launcher = FakeLauncher(greeting_guest)
        self.pool = BlankPool(starter_of(self.launcher, folder, group), size=1, changed=lambda: None)
        stager = Stager(StoredFiles(MemoryBlobs()), TrustedKey(folder / "keys"), FileCache(folder / "cache"))
        devices = CpusAndOneGpu(1)
        (self.cpu,) = devices.inventory()
        self.provisioner = Provisioner(stager, self.pool, devices)


@asynccontextmanager
async def node_in(folder: Path) -> AsyncIterator[Node]:
    """A node whose pool is full."""
    async with asyncio.TaskGroup() as group:
        node = Node(folder, group)
        filling = group.create_task(node.pool.run(node))
        await until(lambda: node.pool.ready == 1)
        yield node
        filling.cancel()
        await asyncio.wait([filling])
        for sandbox in node.launcher.running:
            sandbox.kill()


async def test_a_manifest_that_is_not_there_is_an_error(tmp_path: Path, anyio_backend: str) -> None:
    """The blob store's own."""
    async with node_in(tmp_path) as node:
        with pytest.raises(BlobMissing):
            await node.provisioner.manifest(bind(manifest_sha256="0" * 64))


async def test_a_slice_that_is_not_there_has_no_variables(tmp_path: Path, anyio_backend: str) -> None:
    """A GPU may be lost between the bind and the start."""
    async with node_in(tmp_path) as node:
        with pytest.raises(LookupError):
            node.provisioner.env(gpu_slice("GPU-2"))


async def test_on_a_cpu_slot_a_ready_blank_is_taken_with_the_functions_limits(
    tmp_path: Path, anyio_backend: str
) -> None:
    """A blank has none of them before."""
    version = manifest(function_spec(memory=256 * MIB), base=BASE_NAME)
    async with node_in(tmp_path) as node:
        assert node.provisioner.base == version.base
        (ahead,) = node.launcher.running

        blank = await node.provisioner.blank(version, node.cpu)

        assert blank.is_ready
        assert blank.sandbox is ahead
        assert ahead.limits.memory_bytes == 256 * MIB
        assert node.provisioner.env(node.cpu) == {}


async def test_on_a_gpu_a_new_sandbox_is_started_that_sees_it(tmp_path: Path, anyio_backend: str) -> None:
    """No blank has a device."""
    async with node_in(tmp_path) as node:
        await node.provisioner.blank(manifest(function_spec()), GPU)

        assert node.pool.ready == 1
        assert node.launcher.started[-1].device_nodes == (Path("/dev/nvidia0"),)
        assert node.provisioner.env(GPU) == {"CUDA_VISIBLE_DEVICES": GPU.id}


async def test_a_blank_is_made_once_a_container_has_become_ready(tmp_path: Path, anyio_backend: str) -> None:
    """Its start needed the processors more."""
    async with node_in(tmp_path) as node:
        await node.provisioner.blank(manifest(function_spec()), node.cpu)
        assert node.pool.ready == 0

        node.provisioner.container_changed()

        await until(lambda: node.pool.ready == 1)
