"""Agents on this machine, as the supervisor answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from pilotlight_autoscaler.pools.node_pool import LaunchOrder, LaunchRefused, NoCapacity, PoolError
from pilotlight_autoscaler.pools.providers.local_pool import LocalPool
from pilotlight_core.model.api.pools.pool_agent_api import POOL_SOCKET, PoolAgentAnswer, PoolAgentQuestion
from pilotlight_core.model.api.pools.pool_terms import MachineType, PoolProvider
from tests.builders.pools import launch, pool

HERE = pool("here", MachineType(name="local", gpus="1xT4", cores=2), provider=PoolProvider.LOCAL)
ORDER = LaunchOrder(pool=HERE, launch=launch(1, HERE), types=("local",))


@asynccontextmanager
async def supervisor(folder: Path, answer: Callable[[PoolAgentQuestion], bytes]) -> AsyncIterator[LocalPool]:
    """A pool whose supervisor answers so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = msgspec.json.decode(await reader.readline(), type=PoolAgentQuestion)
        writer.write(answer(question) + b"\n")
        writer.close()

    server = await asyncio.start_unix_server(serve, str(folder / POOL_SOCKET))
    try:
        yield LocalPool("here", folder)
    finally:
        server.close()


async def test_what_is_asked_and_answered(short_folder: Path) -> None:
    """A launch has the node, zone and GPUs of its record and type."""
    asked: list[PoolAgentQuestion] = []

    def answer(question: PoolAgentQuestion) -> bytes:
        asked.append(question)
        return msgspec.json.encode(PoolAgentAnswer(agents=(question.launch,) if question.launch else ()))

    async with supervisor(short_folder, answer) as mine:
        machine = await mine.launch(ORDER)
        assert (machine.launch, machine.node, machine.zone) == ("here-launch1", "here-n1", "a")
        assert list(await mine.list_machines()) == []
        assert await mine.notices() == ()
        await mine.terminate(machine)
        await mine.aclose()
    agent = asked[0].launch
    assert agent is not None
    assert (agent.pool, agent.fake_gpus, agent.cpu_slots) == ("here", "1xT4", 2)
    assert [question.verb for question in asked] == ["launch", "list", "terminate"]
    assert asked[2].id == "here-launch1"


@pytest.mark.parametrize(
    ("answer", "raised", "words"),
    [
        (b'{"why":"full"}', NoCapacity, "--pool-agents"),
        (b'{"why":"no such node"}', PoolError, "no such node"),
        (b"nonsense", PoolError, "not understood"),
    ],
)
async def test_what_is_not_done_says_why(
    short_folder: Path, answer: bytes, raised: type[Exception], words: str
) -> None:
    """As the port has it."""
    async with supervisor(short_folder, lambda _: answer) as mine:
        with pytest.raises(raised, match=words):
            await mine.launch(ORDER)


async def test_where_no_supervisor_answers_the_pool_is_for_another_machine(tmp_path: Path) -> None:
    """And that is said; so is a type that the pool does not have any more."""
    mine = LocalPool("here", tmp_path)
    with pytest.raises(PoolError, match="no 'pilotlight up'"):
        await mine.list_machines()
    with pytest.raises(LaunchRefused, match="no type"):
        await mine.launch(LaunchOrder(pool=HERE, launch=launch(1, HERE, type="gone"), types=("gone",)))
