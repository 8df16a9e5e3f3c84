"""Opens links to the agents or gateways of this machine, and tries again more rarely where that fails.

Those of other hosts are offered theirs (`LinkOffers`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec
import structlog

from pilotlight_core.links import TO_GATEWAY, AcceptedEnds, Link, LinkFolder, name_of, unix_link
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.link_messages import LinkHello
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.agent_links import AgentKey
from pilotlight_gateway.cluster.link_offers import LinkOffers

LOOK_S = 1.0
"""Between two looks for new agents, and between two beats of each link."""
LONGEST_PAUSE_S = 60.0
"""After many failures in a row."""
MOST_LINKS = 64
"""Agents or gateways of one machine."""

log = structlog.get_logger(__name__)


class LinkDialer:
    """Dials those whose sockets are in `folder`. `agents` returns the agents, or gateways, that are believed to live.

    `decoder` reads what they answer. The ends that others have `accepted` here live by the same beat. Those that live
    and have no socket here are told to `offers`.
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
        offers: LinkOffers | None = None,
    ) -> None:
        self._folder = folder
        self._ends = ends
        self._agents = agents
        self._gateway = gateway
        self._clock = clock
        self._decoder = decoder
        self._keeps_unheard = keeps_unheard
        self._accepted = accepted
        self._offers = offers
        self._pauses: dict[AgentKey, tuple[float, float]] = {}
        """Agent -> its last pause, and when it is over."""

    async def run(self) -> None:
        """Keep links to all agents until cancelled; then they are closed."""
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
        """Dial the agents whose sockets are there, and that have no link; have the others offered theirs."""
        names = await asyncio.to_thread(self._folder.names)
        living = list(self._agents())
        here = {agent: None for agent in living if name_of(*agent) in names} if names else {}
        if here:
            await self._dial_missing(here)
        if self._offers is not None:
            self._offers.tick(living, [agent for agent in living if agent not in here])

    async def _dial_missing(self, here: Collection[AgentKey]) -> None:
        at, linked = self._clock(), set(self._ends.agents())
        self._pauses = {agent: pause for agent, pause in self._pauses.items() if agent in here}
        room = MOST_LINKS - sum(agent in linked for agent in here)
        for agent in here:
            if agent not in linked and room > 0 and self._pauses.get(agent, (0.0, at))[1] <= at:
                room -= 1
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
