"""Opens links to the agents or gateways of this machine, and tries again more rarely where that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import structlog

from pilotlight_core.links import TO_GATEWAY, AcceptedEnds, Link, LinkFolder, name_of, unix_link
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.link_messages import LinkHello
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.agent_links import AgentKey

LOOK_S = 1.0
"""Between two looks for new agents, and between two beats of each link."""
LONGEST_PAUSE_S = 60.0
"""After many failures in a row."""
MOST_LINKS = 64
"""Agents or gateways of one machine."""

log = structlog.get_logger(__name__)


class LinkDialer:
    """Dials those whose sockets are in `folder`. `agents` returns the agents, or gateways, that are believed to live.

    `decoder` reads what they answer. The ends that others have `accepted` here live by the same beat.
    """

    def __init__(
        self,
        folder: LinkFolder,
        ends: AgentEnds,
        agents: Callable[[], Iterable[AgentKey]],
        *,
        gateway: str,
        clock: Callable[[], float],
        decoder: msgspec.msgpack.Decoder[Any] = TO_GATEWAY,
        keeps_unheard: bool = False,
        accepted: AcceptedEnds | None = None,
    ) -> None:
        self._folder = folder
        self._ends = ends
        self._agents = agents
        self._gateway = gateway
        self._clock = clock
        self._decoder = decoder
        self._keeps_unheard = keeps_unheard
        self._accepted = accepted
        self._pauses: dict[AgentKey, tuple[float, float]] = {}
        """Agent -> its last pause, and when it is over."""

    async def run(self) -> None:
        """Keep links to all agents of this machine until cancelled; then they are closed."""
        try:
            while True:
                await self.open_missing()
                await asyncio.sleep(LOOK_S)
                self._ends.tick()
                if self._accepted is not None:
                    self._accepted.tick()
        finally:
            self._ends.close_all("the gateway ends")
            if self._accepted is not None:
                self._accepted.close_all("the gateway ends")

    async def open_missing(self) -> None:
        """Dial the agents whose sockets are there, and that have no link."""
        names = await asyncio.to_thread(self._folder.names)
        if not names:
            return
        at, linked = self._clock(), set(self._ends.agents())
        here = [agent for agent in self._agents() if name_of(*agent) in names]
        self._pauses = {agent: pause for agent, pause in self._pauses.items() if agent in here}
        for agent in here:
            if agent not in linked and len(self._ends) < MOST_LINKS and self._pauses.get(agent, (0.0, at))[1] <= at:
                await self._dial(agent, at)

    async def _dial(self, agent: AgentKey, at: float) -> None:
        before, _ = self._pauses.get(agent, (LOOK_S / 2, at))
        pause = min(2 * before, LONGEST_PAUSE_S)
        self._pauses[agent] = (pause, at + pause)
        loop = asyncio.get_running_loop()
        try:
            end = await self._folder.dial(*agent, lambda: self._link(loop))
        except OSError as error:
            log.info(
                "a process of this machine could not be linked", node=agent[0], instance=agent[1], error=str(error)
            )
            return
        if end.is_open:
            node, instance = agent
            self._ends.begin(end, LinkHello(link=token(), gateway=self._gateway, node=node, instance=instance))

    def _link(self, loop: asyncio.AbstractEventLoop) -> Link:
        return unix_link(self._ends, self._decoder, loop, keeps_unheard=self._keeps_unheard)
