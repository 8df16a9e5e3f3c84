"""Agents that pools of nodes start and end on this machine: `--pool-agents` of `pilotlight up`.

The controller asks for them on a socket in the state folder, which only its user may open. They are kept running like
all other processes, so a controller that is killed finds them as they were, and they end with the supervisor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog
from msgspec.structs import replace

from pilotlight_core.model.api.pools.pool_agent_api import AgentLaunch, PoolAgentAnswer, PoolAgentQuestion
from pilotlight_supervisor.supervisor import ManagedProcess, Supervisor

READ_WITHIN_S = 5.0
MOST_QUESTION = 64 * 1024
CONNECTIONS = 32

log = structlog.get_logger(__name__)

AgentPart = Callable[[AgentLaunch], ManagedProcess]
"""The process of an agent.

Raises:
    ValueError: it cannot be; says why.
"""


class PoolAgents:
    """At most `most` at a time. `part_of` makes the process of one."""

    def __init__(self, supervisor: Supervisor, part_of: AgentPart, most: int) -> None:
        self._supervisor = supervisor
        self._part_of = part_of
        self._most = most
        self._running: dict[str, tuple[AgentLaunch, str]] = {}
        """By launch, with its process's name."""
        self._turn = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        self._open = 0

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Answer on a socket until the end of the block."""
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - a name in a folder of this machine
        before = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(self._serve, str(path), limit=MOST_QUESTION)
        finally:
            os.umask(before)
        try:
            yield
        finally:
            server.close()
            path.unlink(missing_ok=True)  # noqa: ASYNC240 - a name in a folder of this machine

    async def answer(self, question: PoolAgentQuestion) -> PoolAgentAnswer:
        """What the controller asks for, done."""
        match question.verb:
            case "list":
                return PoolAgentAnswer(
                    agents=tuple(agent for agent, _ in self._running.values() if agent.pool == question.pool)
                )
            case "launch":
                async with self._turn:
                    return await self._launch(question.launch)
            case "terminate":
                return self._terminate(question)

    async def _launch(self, asked: AgentLaunch | None) -> PoolAgentAnswer:
        if asked is None:
            return PoolAgentAnswer(why="launch: expected the agent to launch")
        if (known := self._running.get(asked.launch)) is not None:
            return PoolAgentAnswer(agents=(known[0],))
        if len(self._running) >= self._most or any(agent.node == asked.node for agent, _ in self._running.values()):
            return PoolAgentAnswer(why="full")
        try:
            part = self._part_of(asked)
            await self._supervisor.add(part)
        except (ValueError, OSError) as error:
            return PoolAgentAnswer(why=str(error))
        self._running[asked.launch] = asked, part.name
        log.info("an agent of a pool runs", pool=asked.pool, node=asked.node)
        return PoolAgentAnswer(agents=(asked,))

    def _terminate(self, question: PoolAgentQuestion) -> PoolAgentAnswer:
        found = self._running.get(question.id)
        if found is None or found[0].pool != question.pool or found[0].is_ending:
            return PoolAgentAnswer()
        agent, name = replace(found[0], is_ending=True), found[1]
        self._running[agent.launch] = agent, name
        ending = asyncio.create_task(self._end(agent, name))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return PoolAgentAnswer(agents=(agent,))

    async def _end(self, agent: AgentLaunch, name: str) -> None:
        await self._supervisor.remove(name)
        self._running.pop(agent.launch, None)
        log.info("an agent of a pool has ended", pool=agent.pool, node=agent.node)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= CONNECTIONS:
                async with asyncio.timeout(READ_WITHIN_S):
                    line = await reader.readline()
                writer.write(msgspec.json.encode(await self._answer(line)) + b"\n")
                async with asyncio.timeout(READ_WITHIN_S):
                    await writer.drain()
        except (OSError, TimeoutError, ValueError) as error:
            log.warning("a question for agents of pools was not answered", error=repr(error))
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, line: bytes) -> PoolAgentAnswer:
        try:
            question = msgspec.json.decode(line, type=PoolAgentQuestion)
        except msgspec.DecodeError as error:
            return PoolAgentAnswer(why=f"the question is not understood: {error}")
        return await self.answer(question)
