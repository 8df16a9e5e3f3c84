"""The parts of an agent, made without a bus, and the files of it that outlive it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.messages.node_messages import Drain, HostShare, SandboxCeilings
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from pilotlight_runtime.devices.cpu_slots import CpuDevices
from pilotlight_runtime.node import agent_parts
from pilotlight_runtime.node.agent_folders import NodeFolders, own_folders
from pilotlight_runtime.node.agent_parts import AgentDependencies, AgentParts, build_parts, open_records
from pilotlight_runtime.node.node_reports import NodeIdentity
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from pilotlight_runtime.sandbox.launchers import launcher
from pilotlight_runtime.sandbox.sandbox_port import Launcher
from tests.builders.calls import run
from tests.builders.nodes import CEILINGS, bind
from tests.runtime.containers.fake_guests import BASE_NAME, greeting_guest, starter_of
from tests.runtime.local_files import stored_files
from tests.runtime.metering.ended import ended_share


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[NodeFolders]:
    with own_folders(tmp_path, "n1") as folders:
        yield folders


@asynccontextmanager
async def parts_of(
    bus: Bus, folders: NodeFolders, with_launcher: Launcher, *, ceilings: SandboxCeilings = CEILINGS
) -> AsyncIterator[AgentParts]:
    """The parts of a node with two CPU slots; nothing of them runs."""
    async with open_records(folders) as records, asyncio.TaskGroup() as group:
        needs = AgentDependencies(
            identity=NodeIdentity(node="n1", instance="i1", region="local", zone="local-a", sandbox="bubblewrap"),
            bus=bus,
            files=stored_files(MemoryBlobs()),
            verifier=TrustedKeys(folders.root / "keys"),
            launcher=with_launcher,
            devices=CpuDevices(2),
            bases=(starter_of(with_launcher, folders.sandboxes, group).base,),
            ceilings=ceilings,
            folders=folders,
            blanks=0,
            cache_bytes=7,
            host=HostShare(cpu_millis=4000, memory=16 * 2**30),
        )
        parts = build_parts(needs, group, records)
        yield parts
        await parts.containers.drain_all(drain_s=0.0, end_s=30.0)
        await parts.calls.bodies.close()


async def test_the_cache_has_the_size_that_the_operator_gave_it(
    bus: Bus, folders: NodeFolders, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    """By `--cache-bytes`."""
    made: list[FileCache] = []

    def make(folder: Path, limit: int) -> FileCache:
        made.append(FileCache(folder, limit))
        return made[-1]

    monkeypatch.setattr(agent_parts, "FileCache", make)
    async with parts_of(bus, folders, FakeLauncher(greeting_guest)):
        assert [cache.statistics().limit for cache in made] == [7]


async def test_records_that_cannot_be_opened_leave_none_open(folders: NodeFolders, anyio_backend: str) -> None:
    """A folder is where a file should be; as soon as it is not, all can be opened."""
    folders.waiting.mkdir()
    with pytest.raises(OSError, match="waiting"):
        async with open_records(folders):
            raise AssertionError("opened")

    folders.waiting.rmdir()
    async with open_records(folders) as records:
        assert records.usage_log.cut_bytes == 0
        assert records.waiting.left_behind == ()


async def test_calls_that_an_agent_had_not_started_are_left_to_the_next(
    folders: NodeFolders, anyio_backend: str
) -> None:
    """It finds the notes of the one before."""
    async with open_records(folders) as records:
        records.waiting.add(run("call_1"))

    async with open_records(folders) as records:
        assert [call.call_id for call in records.waiting.left_behind] == ["call_1"]


async def test_usage_that_callers_were_told_of_is_in_the_next_agents_log(
    folders: NodeFolders, anyio_backend: str
) -> None:
    """Once, however often agents are killed before it is stored."""
    async with open_records(folders) as records:
        records.ended_shares.add(ended_share("call_1", ns=40))

    for _ in range(2):
        async with open_records(folders) as records:
            shares = [s for p in records.usage_log.pending(9) for e in p.record.events for s in e.shares]
            assert [(share.call_id, share.ns) for share in shares] == [("call_1", 40)]


async def test_without_the_logs_mark_nothing_is_billed_again(folders: NodeFolders, anyio_backend: str) -> None:
    """What the log has cannot be told from what it lacks: the operator pays, and is told."""
    async with open_records(folders) as records:
        records.ended_shares.add(ended_share("call_1", ns=40))
    (folders.usage / "acknowledged").write_bytes(b"{torn")

    with capture_logs() as lines:
        async with open_records(folders) as records:
            assert records.usage_log.pending(9) == []
    assert [line["calls"] for line in lines if "given up" in line["event"]] == [1]


async def test_a_usage_log_that_a_crash_tore_is_a_warning(folders: NodeFolders, anyio_backend: str) -> None:
    """What was torn is cut off, and the agent starts."""
    (folders.usage / "00000001.log").write_bytes(b"torn")

    with capture_logs() as lines:
        async with open_records(folders):
            pass

    assert [(line["event"], line["cut_bytes"]) for line in lines] == [("the usage log was torn by a crash", 4)]


async def test_sandboxes_without_walls_are_for_one_tenant(bus: Bus, folders: NodeFolders, anyio_backend: str) -> None:
    """What the launcher guarantees decides, not the operator."""
    for made, second in ((launcher("process"), "other_tenant"), (FakeLauncher(greeting_guest), "")):
        async with parts_of(bus, folders, made) as parts:
            assert parts.containers.command(bind(container="c1", slice="cpu-0", tenant="acme")).ok
            answer = parts.containers.command(bind(container="c2", slice="cpu-1", tenant="rival"))

            assert answer.reason == second


async def test_blanks_are_under_the_nodes_ceilings(bus: Bus, folders: NodeFolders, anyio_backend: str) -> None:
    """Before they are anybody's."""
    low = SandboxCeilings(shm=2**20, scratch=2**20, pids=64)
    async with parts_of(bus, folders, FakeLauncher(greeting_guest), ceilings=low) as parts:
        limits = parts.pools.of(BASE_NAME).starter.limits
        assert (limits.shm_bytes, limits.tmp_bytes, limits.pids) == (2**20, 2**20, 64)


async def test_a_leaked_slot_is_found(bus: Bus, folders: NodeFolders, anyio_backend: str) -> None:
    """The parts are sound until one of them is not."""
    async with parts_of(bus, folders, FakeLauncher(greeting_guest)) as parts:
        parts.check_integrity()
        parts.calls.slots.open("c1", "ver_1", 1)
        parts.calls.slots.accept(run(container="c1"), 1.0)
        parts.check_integrity()
        parts.calls.slots._containers["c1"].held.clear()

        with pytest.raises(AssertionError, match="disagree on what is held"):
            parts.check_integrity()


async def test_a_changed_container_is_reported_at_once(bus: Bus, folders: NodeFolders, anyio_backend: str) -> None:
    """Binding and draining wake the reporter."""
    async with parts_of(bus, folders, FakeLauncher(greeting_guest)) as parts:
        parts.reporter.due.clear()
        parts.containers.command(bind(container="c1", slice="cpu-0"))
        assert parts.reporter.due.is_set()

        parts.reporter.due.clear()
        parts.containers.command(Drain(epoch=1, container="c1", within_ms=0))
        assert parts.reporter.due.is_set()
