"""Opens links to the agents of this machine, and tries again more rarely where that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import structlog

from pilotlight_core.links import TO_GATEWAY, Link, LinkFolder, UnixLink
from pilotlight_core.links.unix_links import name_of
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.link_messages import LinkHello
from pilotlight_gateway.cluster.agent_links import AgentLink, AgentLinks

LOOK_S = 1.0
"""Between two looks for new agents, and between two beats of each link."""
LONGEST_PAUSE_S = 60.0
"""After many failures in a row."""
MOST_LINKS = 64
"""Agents of one machine."""

log = structlog.get_logger(__name__)
AgentKey = tuple[str, str]
"""Node and incarnation."""


class LinkReader(Protocol):
    """Gets what comes over links."""

    def on_link(self, node: str, messages: list[Any]) -> None:
        """A group of an agent's messages."""
        ...


class LinkDialer:
    """Owns the gateway's ends. `agents` returns the agents that are believed to live."""

    def __init__(
        self,
        folder: LinkFolder,
        links: AgentLinks,
        reader: LinkReader,
        agents: Callable[[], Iterable[AgentKey]],
        *,
        gateway: str,
        clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._links = links
        self._reader = reader
        self._agents = agents
        self._gateway = gateway
        self._clock = clock
        self._ends: dict[Link, LinkHello] = {}
        """Each end, and what it was greeted with."""
        self._greeted: dict[Link, AgentLink] = {}
        self._pauses: dict[AgentKey, tuple[float, float]] = {}
        """Agent -> its last pause, and when it is over."""

    async def run(self) -> None:
        """Keep links to all agents of this machine until cancelled; then they are closed."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK_S)
                for end in list(self._ends):
                    end.tick()
        finally:
            for end in list(self._ends):
                end.close("the gateway ends")

    async def look(self) -> None:
        """Dial the agents whose sockets are there, and that have no link."""
        names = await asyncio.to_thread(self._folder.names)
        if not names:
            return
        at, linked = self._clock(), {(hello.node, hello.instance) for hello in self._ends.values()}
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
            end = await self._folder.dial(*agent, lambda: UnixLink(self, TO_GATEWAY, loop))
        except OSError as error:
            log.info("an agent of this machine could not be linked", node=agent[0], error=str(error))
            return
        hello = LinkHello(link=token(), gateway=self._gateway, node=agent[0], instance=agent[1])
        if end.is_open:
            self._ends[end] = hello
            end.send(hello)

    # -- the owner of its ends -----------------------------------------------------------------------------------

    def opened(self, link: Link) -> None:
        """See `LinkOwner`; it is greeted as soon as `dial` has returned."""

    def received(self, link: Link, messages: list[Any]) -> None:
        """See `LinkOwner`."""
        greeted = self._greeted.get(link)
        if greeted is not None:
            self._reader.on_link(greeted.node, messages)
        elif (hello := self._ends.get(link)) is not None and messages == [hello]:
            link.hold()
            found = AgentLink(name=hello.link, node=hello.node, instance=hello.instance, end=link)
            self._greeted[link] = found
            self._pauses.pop((hello.node, hello.instance), None)
            self._links.greeted(found)
        else:
            link.close("it is another agent")

    def closed(self, link: Link) -> None:
        """See `LinkOwner`."""
        self._ends.pop(link, None)
        if (greeted := self._greeted.pop(link, None)) is not None:
            self._links.closed(greeted)
