"""Agents that pools start on this machine."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.model.api.pools.pool_agent_api import AgentLaunch, PoolAgentAnswer, PoolAgentQuestion
from pilotlight_supervisor.pool_agents import PoolAgents
from pilotlight_supervisor.supervisor import ManagedProcess, Supervisor
from tests.supervisor.test_embedded_bus import alive
from tests.waiting import until


def agent(number: int = 1, pool: str = "here", node: str = "") -> AgentLaunch:
    return AgentLaunch(pool=pool, launch=f"launch{number}", node=node or f"local-pool-{number}", zone="a")


def part_of(launch: AgentLaunch) -> ManagedProcess:
    if launch.node == "nobody":
        raise ValueError("nobody is no node")
    return ManagedProcess(name=launch.node, command=("/bin/sleep", "1000"), rank=2, stop_within_s=0.5)


LIST = PoolAgentQuestion(verb="list", pool="here")


def launching(launch: AgentLaunch | None = None) -> PoolAgentQuestion:
    return PoolAgentQuestion(verb="launch", pool="here", launch=launch)


def ending(name: str) -> PoolAgentQuestion:
    return PoolAgentQuestion(verb="terminate", pool="here", id=name)


@pytest.fixture
def supervisor(tmp_path: Path) -> Supervisor:
    """One without processes of its own."""
    return Supervisor((), tmp_path / "logs")


async def test_agents_are_launched_listed_and_ended(supervisor: Supervisor) -> None:
    """Each once, however often it is asked for; what is ended leaves no process."""
    agents = PoolAgents(supervisor, part_of, 2)
    await supervisor.start()
    try:
        first = await agents.answer(launching(agent(1)))
        assert await agents.answer(launching(agent(1))) == first
        assert (await agents.answer(launching(agent(2, "other")))).why == ""
        assert (await agents.answer(launching(agent(3)))).why == "full"
        assert [each.node for each in (await agents.answer(LIST)).agents] == ["local-pool-1"]
        pid = supervisor.pids["local-pool-1"]

        assert (await agents.answer(ending("launch2"))).agents == ()  # another pool's
        (going,) = (await agents.answer(ending("launch1"))).agents
        assert going.is_ending
        assert (await agents.answer(ending("launch1"))).agents == ()  # it ends already
        await until(lambda: "local-pool-1" not in supervisor.statistics())
        assert not alive(pid)
        assert (await agents.answer(LIST)).agents == ()
        assert (await agents.answer(launching(agent(4)))).why == ""
    finally:
        await supervisor.stop()


async def test_what_cannot_be_says_why(supervisor: Supervisor) -> None:
    """A node without a user, a launch of nothing, a node's name twice."""
    agents = PoolAgents(supervisor, part_of, 5)
    await supervisor.start()
    try:
        assert (await agents.answer(launching(agent(node="nobody")))).why == "nobody is no node"
        assert "expected" in (await agents.answer(launching())).why
        await agents.answer(launching(agent(1)))
        assert (await agents.answer(launching(agent(2, node="local-pool-1")))).why == "full"
    finally:
        await supervisor.stop()


async def test_it_is_asked_on_a_socket_of_its_user(supervisor: Supervisor, short_folder: Path) -> None:
    """Nobody else may open it; what is not understood is answered."""
    path = short_folder / "pools.sock"
    agents = PoolAgents(supervisor, part_of, 2)
    await supervisor.start()
    try:
        async with agents.listening(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            answers = [await ask(path, line) for line in (msgspec.json.encode(LIST), b"nonsense")]
        assert answers[0] == PoolAgentAnswer()
        assert "not understood" in answers[1].why
        assert not path.exists()
    finally:
        await supervisor.stop()


async def ask(path: Path, line: bytes) -> PoolAgentAnswer:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(line + b"\n")
    answer = await reader.readline()
    writer.close()
    return msgspec.json.decode(answer, type=PoolAgentAnswer)
