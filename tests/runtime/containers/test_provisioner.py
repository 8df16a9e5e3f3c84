"""What a container is given at its start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilotlight_core.host.blobs import BlobMissing, MemoryBlobs
from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.node_messages import SandboxCeilings
from pilotlight_runtime.containers.blanks.blank_pool import BlankPool
from pilotlight_runtime.containers.blanks.blank_pools import BlankPools
from pilotlight_runtime.containers.blanks.resource_limits import blank_limits
from pilotlight_runtime.containers.files.compile_cache import CompileCache
from pilotlight_runtime.containers.files.disk_room import NoDiskRoom
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.staging import Stager
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.containers.secret_requests import MemoryLoadSecrets
from pilotlight_runtime.devices.cpu_slots import CpuDevices
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.egress.proxy_supervisor import ProxySupervisor
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds
from pilotlight_runtime.environments.environment_cache import EnvironmentCache, EnvironmentRecord, keep_built
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from tests.builders.nodes import CEILINGS, bind, gpu_slice
from tests.builders.specs import function_spec, manifest
from tests.runtime.containers.fake_guests import BASE_NAME, greeting_guest, starter_of
from tests.runtime.local_files import stored_files
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
    needs_processors = False

    def __init__(self, folder: Path, group: asyncio.TaskGroup, most: SandboxCeilings) -> None:
        self.launcher = FakeLauncher(greeting_guest)
        starter = starter_of(self.launcher, folder, group, limits=blank_limits(most))
        self.pool = BlankPool(starter, size=1, changed=lambda: None)
        stager = self.stager = Stager(
            stored_files(MemoryBlobs()), TrustedKeys(folder / "keys"), FileCache(folder / "cache")
        )
        devices = CpusAndOneGpu(1)
        (self.cpu,) = devices.inventory()
        self.ways_out = ProxySupervisor()
        pools = BlankPools([self.pool])
        compiles = CompileCache(folder / "compiled", limit=1)
        self.environments = EnvironmentCache(folder / "environments", 10)
        builds = EnvironmentBuilds(self.environments, {}, None, group, lambda: None)
        secrets = MemoryLoadSecrets()
        self.provisioner = Provisioner(stager, pools, devices, most, self.ways_out, secrets, compiles, builds)


@asynccontextmanager
async def node_in(folder: Path, most: SandboxCeilings = CEILINGS) -> AsyncIterator[Node]:
    """A node whose pool is full."""
    async with asyncio.TaskGroup() as group:
        node = Node(folder, group, most)
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


async def test_environments_that_nobody_uses_make_room_for_files(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and where there are none the start says what is lacking."""
    async with node_in(tmp_path) as node:
        version = manifest(function_spec(), base=BASE_NAME)
        blank = await node.provisioner.blank(version, node.cpu)
        tries = list[int]()

        async def full(*_: object) -> None:
            tries.append(1)
            if len(tries) != 2:
                raise NoDiskRoom("no room", lacking=1)

        monkeypatch.setattr(node.stager, "stage", full)
        fresh = node.environments.fresh_folder("acme", "env")
        record = EnvironmentRecord(id="env_1", files=1, bytes=5)
        keep_built(fresh, node.environments.path("acme", "env"), record)
        node.environments.add("acme", "env", record)

        await node.provisioner.stage(bind(), version, blank)
        assert (len(tries), node.environments.tenants()) == (2, [])
        with pytest.raises(NoDiskRoom):
            await node.provisioner.stage(bind(), version, blank)


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
        assert node.provisioner.refusal(version) is None
        (ahead,) = node.launcher.running

        blank = await node.provisioner.blank(version, node.cpu)

        assert blank.is_ready
        assert blank.sandbox is ahead
        assert ahead.limits.memory_bytes == 256 * MIB
        assert node.provisioner.env(node.cpu) == {}


async def test_a_container_is_given_what_its_manifest_names_and_its_tenant_may_have(
    tmp_path: Path, anyio_backend: str
) -> None:
    """Neither more than it asks for, nor more than the operator allows; a way out ends with its container."""
    named = ("a.example.com:443", "b.example.com:443")
    version = manifest(function_spec(network=named), base=BASE_NAME)
    async with node_in(tmp_path) as node:
        blank = await node.provisioner.blank(version, node.cpu)
        folder = blank.network

        assert node.provisioner.open_network(bind("c1"), version, blank) == ""
        assert node.provisioner.open_network(bind("c1", network=("c.example.com:443",)), version, blank) == ""
        plain = manifest(function_spec(), base=BASE_NAME)
        assert node.provisioner.open_network(bind("c1", network=named), plain, blank) == ""
        assert list(folder.iterdir()) == []
        assert node.ways_out.open_ways == 0

        given = node.provisioner.open_network(bind("c1", network=("b.example.com:443", "*:443")), version, blank)
        assert given == str(blank.network_inside)
        assert node.ways_out.targets_of("c1") == ("b.example.com:443",)
        assert (node.provisioner.network_mark("c1", version), node.provisioner.network_mark("c2", version)) == (2, 0)
        assert [each.name for each in folder.iterdir()] == ["proxy.sock"]

        node.provisioner.close_network("c1")
        node.provisioner.close_network("c1")
        assert node.ways_out.open_ways == 0


@pytest.mark.parametrize("limit", [{"shm": MIB}, {"scratch": MIB}])
async def test_a_function_with_file_systems_of_its_own_size_gets_a_new_sandbox(
    tmp_path: Path, anyio_backend: str, limit: dict[str, int]
) -> None:
    """A blank's are mounted already; it is left to others."""
    async with node_in(tmp_path) as node:
        await node.provisioner.blank(manifest(function_spec(**limit)), node.cpu)  # type: ignore[arg-type]

        assert node.pool.ready == 1
        started = node.launcher.started[-1].limits
        assert MIB in (started.shm_bytes, started.tmp_bytes)


async def test_a_blank_gets_the_functions_limit_of_processes(tmp_path: Path, anyio_backend: str) -> None:
    """Its cgroup counts them."""
    async with node_in(tmp_path) as node:
        (ahead,) = node.launcher.running

        blank = await node.provisioner.blank(manifest(function_spec(pids=2048)), node.cpu)

        assert blank.sandbox is ahead
        assert ahead.limits.pids == 2048


async def test_a_ceiling_binds_a_function_that_names_nothing(tmp_path: Path, anyio_backend: str) -> None:
    """A blank has its limits already and is taken; so has a sandbox of its own."""
    async with node_in(tmp_path, SandboxCeilings(shm=64 * MIB, scratch=32 * MIB, pids=64)) as node:
        (ahead,) = node.launcher.running
        assert (await node.provisioner.blank(manifest(function_spec()), node.cpu)).sandbox is ahead
        await node.provisioner.blank(manifest(function_spec()), GPU)

        given = [ahead.limits, *(spec.limits for spec in node.launcher.started)]
        assert {(one.shm_bytes, one.tmp_bytes, one.pids) for one in given} == {(64 * MIB, 32 * MIB, 64)}


async def test_what_the_node_lacks_is_named(tmp_path: Path, anyio_backend: str) -> None:
    """Another base environment, and limits above its ceilings."""
    async with node_in(tmp_path) as node:
        other = node.provisioner.refusal(manifest(function_spec(), base="torch"))
        large = node.provisioner.refusal(manifest(function_spec(pids=CEILINGS.pids + 1)))

    assert other == RemoteError("UnknownBase", "this node has no base environment 'torch'; it has default")
    assert large == RemoteError("OverCeiling", "it asks for pids=1025, and this node allows 1024")


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
