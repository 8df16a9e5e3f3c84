"""Agents on the machine of `pilotlight up`, as nodes of their own: the supervisor starts and ends them when asked.

They are its children, not the controller's: a controller that is killed finds them again by asking. It answers on a
socket in the state folder that belongs to its user alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pilotlight_autoscaler.pools.node_pool import (
    LaunchOrder,
    LaunchRefused,
    NoCapacity,
    PoolError,
    PoolMachine,
    PoolNotice,
)
from pilotlight_core.model.api.pools.pool_agent_api import (
    POOL_SOCKET,
    AgentLaunch,
    PoolAgentAnswer,
    PoolAgentQuestion,
)

WITHIN_S = 15.0
"""An agent that is ended has ten seconds."""
MOST_ANSWER = 2**20


class LocalPool:
    def __init__(self, pool: str, state_dir: Path) -> None:
        self._pool = pool
        self._path = state_dir / POOL_SOCKET

    async def list_machines(self) -> Sequence[PoolMachine]:
        answer = await self._ask(PoolAgentQuestion(verb="list", pool=self._pool))
        return [_machine(each) for each in answer.agents]

    async def launch(self, order: LaunchOrder) -> PoolMachine:
        record, terms = order.launch, order.pool.terms
        type_ = next((each for each in terms.types if each.name == record.type), None)
        if type_ is None:
            raise LaunchRefused(f"the pool has no type {record.type}")
        launch = AgentLaunch(
            launch=record.id, pool=self._pool, node=record.node, zone=record.zone, spot=record.spot,
            fake_gpus=type_.gpus, cpu_slots=max(1, int(type_.cores)),
        )  # fmt: skip
        answer = await self._ask(PoolAgentQuestion(verb="launch", pool=self._pool, launch=launch))
        return _machine(answer.agents[0])

    async def terminate(self, machine: PoolMachine) -> None:
        await self._ask(PoolAgentQuestion(verb="terminate", pool=self._pool, id=machine.launch))

    async def notices(self) -> Sequence[PoolNotice]:
        return ()

    async def aclose(self) -> None:
        """Each question has a connection of its own."""

    async def _ask(self, question: PoolAgentQuestion) -> PoolAgentAnswer:
        try:
            async with asyncio.timeout(WITHIN_S):
                reader, writer = await asyncio.open_unix_connection(str(self._path), limit=MOST_ANSWER)
                try:
                    writer.write(msgspec.json.encode(question) + b"\n")
                    await writer.drain()
                    line = await reader.readline()
                finally:
                    writer.close()
        except (FileNotFoundError, ConnectionRefusedError):
            raise PoolError(
                f"no 'pilotlight up' with --pool-agents answers at {self._path}: local pools are for its machine alone"
            ) from None
        except (OSError, TimeoutError, ValueError) as error:
            raise PoolError(f"the supervisor does not answer: {error!r}") from None
        try:
            answer = msgspec.json.decode(line, type=PoolAgentAnswer)
        except msgspec.DecodeError as error:
            raise PoolError(f"the supervisor's answer is not understood: {error}") from None
        if answer.why == "full":
            raise NoCapacity("as many agents run as --pool-agents of 'pilotlight up' allows")
        if answer.why:
            raise PoolError(answer.why)
        return answer


def _machine(agent: AgentLaunch) -> PoolMachine:
    return PoolMachine(
        launch=agent.launch, provider_id=agent.launch, node=agent.node, type="", zone=agent.zone,
        is_ending=agent.is_ending,
    )  # fmt: skip
