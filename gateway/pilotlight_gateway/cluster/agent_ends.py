"""The ends of links that a gateway has dialled, to agents or other gateways, from the first greeting to their end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from pilotlight_core.links import LinkPort
from pilotlight_core.model.messages.link_messages import LinkHello
from pilotlight_gateway.cluster.agent_links import ON_THE_MACHINE, AgentKey, AgentLink


class LinkReader(Protocol):
    """Gets what comes over links."""

    def on_link(self, node: str, messages: list[Any]) -> None:
        """A group of an agent's messages."""
        ...


class EndedLinks(Protocol):
    """Hears what becomes of each end: `AgentLinks` or `PeerLinks`."""

    def begun(self, link: AgentLink) -> None:
        """The other side is being greeted."""
        ...

    def greeted(self, link: AgentLink) -> None:
        """It has greeted back."""
        ...

    def closed(self, link: AgentLink) -> None:
        """The link has ended."""
        ...


class AgentEnds:
    """A `LinkOwner`: greets, and tells `links` who has greeted back."""

    def __init__(self, links: EndedLinks, reader: LinkReader) -> None:
        self._links = links
        self._reader = reader
        self._begun: dict[LinkPort, tuple[AgentLink, LinkHello]] = {}
        """Each open end, and what was said on it first."""
        self._greeted: dict[LinkPort, AgentLink] = {}

    def __len__(self) -> int:
        return len(self._begun)

    def agents(self) -> Iterable[AgentKey]:
        """The agents to which there is an end, greeted or not."""
        return [(link.node, link.instance) for link, _ in self._begun.values()]

    def begin(self, link: LinkPort, hello: LinkHello, way: str = ON_THE_MACHINE) -> None:
        """Greet an agent over a new end."""
        begun = AgentLink(name=hello.link, node=hello.node, instance=hello.instance, end=link, way=way)
        self._begun[link] = (begun, hello)
        self._links.begun(begun)
        link.send(hello)

    def opened(self, link: LinkPort) -> None:
        """See `LinkOwner`; who has opened it greets."""

    def received(self, link: LinkPort, messages: list[Any]) -> None:
        """See `LinkOwner`."""
        greeted, begun = self._greeted.get(link), self._begun.get(link)
        if greeted is not None:
            self._reader.on_link(greeted.node, messages)
        elif begun is not None and messages == [begun[1]]:
            self._greeted[link] = begun[0]
            self._links.greeted(begun[0])
        else:
            link.close("it is another agent")

    def closed(self, link: LinkPort) -> None:
        """See `LinkOwner`."""
        self._greeted.pop(link, None)
        if (begun := self._begun.pop(link, None)) is not None:
            self._links.closed(begun[0])

    def tick(self) -> None:
        """Call it each second."""
        for link in list(self._begun):
            link.tick()

    def close_all(self, reason: str) -> None:
        """End every link."""
        for link in list(self._begun):
            link.close(reason)
