"""The agent as a process of its own: started, paused, killed, ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree, rmtree

from pilotlight_core.bus import connect
from pilotlight_core.host.blobs import FolderBlobs
from pilotlight_core.host.foundations import Foundation, Foundations
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Refusal
from pilotlight_core.model.messages.node_messages import NodeReport
from tests.builders.base_venv import base_venv
from tests.forked_module import ForkedModule
from tests.runtime.harness import Harness, everybody
from tests.waiting import until


def started(log: Path, *words: str) -> ForkedModule:
    """An agent that says into `log` what it says."""
    with log.open("ab") as out:
        return ForkedModule(("pilotlight_runtime", *words), env=os.environ, cwd=log.parent, log=out.fileno())


async def ended(agent: ForkedModule) -> int:
    """The exit code of an agent."""
    return await asyncio.to_thread(agent.wait, 30.0)


async def refused(folder: Path, *words: str) -> str:
    """What an agent says that ends at once."""
    log = folder / "refused.log"
    log.unlink(missing_ok=True)
    assert await ended(started(log, *words)) == 1
    said = log.read_text()
    assert "Traceback" not in said
    return said


@asynccontextmanager
async def process(world: Harness, *, sandbox: str = "process") -> AsyncIterator[ForkedModule]:
    """`python -m pilotlight_runtime` for the harness's node."""
    flags = {
        "--node": world.node,
        "--nats-url": world.url,
        "--state-dir": str(world.folder),
        "--sandbox": sandbox,
        "--cpu-slots": "2",
        "--blanks": "1",
        "--preimport": "",
    }
    arguments = [part for flag in flags.items() for part in flag]
    running = started(world.folder / "agent.log", *arguments)
    try:
        await world.report(lambda report: report.blanks.get("default") == 1)
        yield running
    finally:
        running.kill()
        await ended(running)


def descendants(pid: int) -> set[int]:
    """Every process that a process has started, directly or not."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            child = int(path.parent.name)
            found |= {child} | descendants(child)
    return found


async def until_gone(pids: set[int]) -> None:
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


async def test_it_ends_in_order_when_it_is_told_to(server_url: str, tmp_path: Path) -> None:
    """SIGTERM: the last report, no process left, and exit code 0."""
    async with everybody(server_url, tmp_path) as world, process(world) as agent:
        await world.bind(await world.deploy("def f():\n    return 1\n"))
        children = descendants(agent.pid)
        assert children

        agent.terminate()

        assert await ended(agent) == 0
        assert await world.report(lambda report: report.stopped)
        await until_gone(children)


async def test_after_a_kill_nothing_is_left_and_the_next_one_takes_over(server_url: str, tmp_path: Path) -> None:
    """SIGKILL: the sandboxes die with their agent; the next agent is another incarnation with free slices."""
    async with everybody(server_url, tmp_path) as world:
        async with process(world, sandbox="bubblewrap") as agent:
            container = await world.bind(await world.deploy("def f():\n    return 1\n"))
            assert await world.run(container).output() == 1
            children, before = descendants(agent.pid), world.reports[-1]
            agent.kill()
            await ended(agent)
            await until_gone(children)

        def is_new(report: NodeReport) -> bool:
            return report.instance != before.instance and report.blanks.get("default") == 1

        async with process(world, sandbox="bubblewrap"):
            after = await world.report(is_new)
            assert not after.containers
            assert not any(part.container for part in after.slices)
            assert (await world.run(container).refused()).reason is Refusal.GONE
            again = await world.bind(await world.deploy("def f():\n    return 1\n"))
            assert await world.run(again).output() == 1


async def test_what_came_while_it_stood_still_is_not_taken_for_fresh(server_url: str, tmp_path: Path) -> None:
    """A call whose time to start passed while the agent was paused never starts; one with more time does."""
    async with everybody(server_url, tmp_path) as world, process(world) as agent:
        container = await world.bind(await world.deploy("def f(n):\n    return n\n"))
        os.kill(agent.pid, signal.SIGSTOP)
        old = world.run(container, {"start_within_ms": 300.0}, n=1)
        await asyncio.sleep(0.6)  # twice its time to start
        young = world.run(container, {"start_within_ms": 30_000.0}, n=2)
        await world.bus.flush()
        os.kill(agent.pid, signal.SIGCONT)

        assert (await old.refused()).reason is Refusal.EXPIRED
        assert await young.output() == 2
        seq = world.reports[-1].seq
        await world.report(lambda report: report.seq > seq + 1)
        assert await world.run(container, {"start_within_ms": 300.0}, n=3).output() == 3


async def test_a_node_has_one_agent(server_url: str, tmp_path: Path) -> None:
    """A second one says so and ends."""
    async with everybody(server_url, tmp_path) as world, process(world):
        assert "choose another --node" in await refused(tmp_path, "--node", world.node, "--state-dir", str(tmp_path))


async def test_a_base_environment_that_cannot_run_guests_ends_the_agent(server_url: str, tmp_path: Path) -> None:
    """At its start, with the environment's name and the interpreter's own words; not when a function needs it."""
    bare = base_venv(tmp_path / "bare", libraries=())
    here = ("--node", "n1", "--state-dir", str(tmp_path), "--nats-url", server_url)
    said = await refused(tmp_path, *here, "--sandbox", "process", "--base", f"bare={bare}")

    assert "the agent cannot run" in said
    assert "--base bare: " in said
    assert "cannot run guests: ModuleNotFoundError" in said


async def test_networks_that_are_none_end_the_agent(server_url: str, tmp_path: Path) -> None:
    """Before a container is let out by a proxy that could not start."""
    words = ("--nats-url", server_url, "--state-dir", str(tmp_path), "--sandbox", "process")
    said = await refused(tmp_path, *words, "--egress-allow", "10.0.0.0/8,home")
    assert "'home' is no address or network" in said


async def test_an_agent_without_its_platforms_key_or_blobs_is_refused(server_url: str, tmp_path: Path) -> None:
    """It ends with what it lacks and where to get it, and offers nothing."""
    region, state = f"r{token(8)}", tmp_path / "state"
    async with connect(server_url, name="foundation-test") as bus:
        signer, store = Signer.load_or_create(tmp_path / "keys"), FolderBlobs(tmp_path / "blobs")
        shared = await store.store_id(create=True)
        await Foundations(bus, region=region).register(Foundation(manifest_key=signer.key_id, blob_store=shared))

    async def lonely(*flags: str) -> str:
        here = ("--node", "lonely", "--state-dir", str(state), "--nats-url", server_url, "--region", region)
        return await refused(tmp_path, *here, "--sandbox", "process", *flags)

    assert "There is no public key to verify manifests with" in await lonely()
    Signer.load_or_create(state / "keys")
    assert "the key that signs manifests that this process has" in await lonely()
    rmtree(state / "keys")
    copytree(tmp_path / "keys", state / "keys")
    assert "the blob store that this process has (one without a store-id)" in await lonely()
    await FolderBlobs(tmp_path / "else").store_id(create=True)
    assert "same --blob-url" in await lonely("--blob-url", f"file://{tmp_path / 'else'}")
