"""The ways to other gateways: over links to those that have one, over the bus to all others.

Each gateway dials, or offers, its own direction, so what two gateways send each other goes over two links. No word says
where the ways change, unlike with agents: whatever of calls goes between gateways may come late, twice or in another
order. An `Enqueue` that comes after its `Withdraw` gets a grant that its origin declines, and grants have numbers. What
a link that ends may have lost is sent again over the bus, so that nobody waits until an origin repeats itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import structlog

from pilotlight_core.links import AcceptedEnds, LinkPort
from pilotlight_core.model.messages.link_messages import LINK_VERSION, LinkHello
from pilotlight_core.model.messages.message import Message
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.agent_links import BETWEEN_HOSTS, ON_THE_MACHINE, AgentLink, BusPort

MOST_PEERS = 64
"""Gateways that have linked to this one."""

log = structlog.get_logger(__name__)


class PeerLinks:
    """Sends to other gateways. `resend(gateway, messages)` is called when a link has ended."""

    def __init__(self, port: BusPort) -> None:
        self._port = port
        self._links: dict[str, AgentLink] = {}
        """By gateway: those that were greeted."""
        self.resend: Callable[[str, list[Message]], None] = lambda _gateway, _messages: None

    def __len__(self) -> int:
        return len(self._links)

    def standing(self) -> dict[str, int]:
        """How many links are in use, by way."""
        ways = [link.way for link in self._links.values()]
        return {way: ways.count(way) for way in (ON_THE_MACHINE, BETWEEN_HOSTS)}

    def send(self, gateway: str, subject: str, message: Message) -> None:
        """Send over the gateway's link, with what else leaves in this turn of the loop, or on the bus's `subject`.

        Raises:
            BusDown, MessageTooLarge: the bus did not take it.
        """
        link = self._links.get(gateway)
        if link is not None:
            link.end.send(message)
        else:
            self._port.send(subject, message)

    def begun(self, link: AgentLink) -> None:
        """See `EndedLinks`; a link that was not greeted is not used."""

    def greeted(self, link: AgentLink) -> None:
        """See `EndedLinks`."""
        self._links[link.instance] = link
        log.info("a gateway has a link", gateway=link.instance, way=link.way)

    def closed(self, link: AgentLink) -> None:
        """See `EndedLinks`: the bus is the way again."""
        if self._links.get(link.instance) is link:
            del self._links[link.instance]
            self.resend(link.instance, link.end.unheard())


class PeerEnds:
    """The ends of links between gateways: `dialled` owns our own, `accepted` those that others have dialled.

    `others()` returns the gateways that live, `received(messages)` gets what they send.
    """

    def __init__(
        self,
        links: PeerLinks,
        others: Callable[[], Iterable[str]],
        received: Callable[[list[Any]], None],
        *,
        gateway: str,
    ) -> None:
        self.links = links
        self._others = others
        self._gateway = gateway
        self._greeted: dict[str, LinkPort] = {}
        """By gateway: those that others have dialled and that are read."""
        self.dialled = AgentEnds(links, self)
        self.accepted = AcceptedEnds(self, received, MOST_PEERS)

    def on_link(self, node: str, messages: list[Any]) -> None:
        """What comes over a link that we have dialled: nothing, since the other gateway dials its own direction."""

    def greeted(self, link: LinkPort, hello: LinkHello) -> None:
        """See `Greeter`."""
        wanted = (hello.version, hello.node, hello.instance) == (LINK_VERSION, "", self._gateway)
        if not wanted or hello.gateway not in self._others():
            link.close("it greets another gateway" if not wanted else "no such gateway lives")
            return
        if (old := self._greeted.get(hello.gateway)) is not None:
            old.close("its gateway has a new one")
        self._greeted[hello.gateway] = link
        link.send(hello)

    def closed(self, link: LinkPort) -> None:
        """See `Greeter`."""
        for gateway in [gateway for gateway, known in self._greeted.items() if known is link]:
            del self._greeted[gateway]
