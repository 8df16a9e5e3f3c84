"""The ways to other gateways: over links to those of this machine, over the bus to all others.

Each gateway dials its own direction, so what two gateways send each other goes over two links. No word says where the
ways change, unlike with agents: whatever of calls goes between gateways may come late, twice or in another order. An
`Enqueue` that comes after its `Withdraw` gets a grant that its origin declines, and grants have numbers. What a link
that ends may have lost is sent again over the bus, so that nobody waits until an origin repeats itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import structlog

from pilotlight_core.links import LinkPort
from pilotlight_core.model.messages.link_messages import LINK_VERSION, LinkHello
from pilotlight_core.model.messages.message import Message
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.agent_links import AgentLink, BusPort

MOST_PEERS = 64
"""Gateways of one machine."""

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
        log.info("a gateway has a link", gateway=link.instance)

    def closed(self, link: AgentLink) -> None:
        """See `EndedLinks`: the bus is the way again."""
        if self._links.get(link.instance) is link:
            del self._links[link.instance]
            self.resend(link.instance, link.end.unheard())


class PeerEnds:
    """A `LinkOwner` of the links that other gateways have dialled; `dialled` owns our own.

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
        self._others = others
        self._received = received
        self._gateway = gateway
        self._ends: dict[LinkPort, str] = {}
        """Each end, and the gateway that has greeted on it; "": none has."""
        self.dialled = AgentEnds(links, self)

    def opened(self, link: LinkPort) -> None:
        """See `LinkOwner`."""
        if len(self._ends) >= MOST_PEERS:
            link.close("there are too many links")
        else:
            self._ends[link] = ""

    def received(self, link: LinkPort, messages: list[Any]) -> None:
        """See `LinkOwner`."""
        if self._ends.get(link):
            self._received(messages)
        elif len(messages) == 1 and isinstance(messages[0], LinkHello) and link in self._ends:
            self._greet(link, messages[0])
        else:
            link.close("it does not greet")

    def closed(self, link: LinkPort) -> None:
        """See `LinkOwner`."""
        self._ends.pop(link, None)

    def on_link(self, node: str, messages: list[Any]) -> None:
        """What comes over a link that we have dialled: nothing, since the other gateway dials its own direction."""

    def tick(self) -> None:
        """Call it each second."""
        for link in list(self._ends):
            link.tick()

    def close_all(self, reason: str) -> None:
        """End every link that others have dialled."""
        for link in list(self._ends):
            link.close(reason)

    def _greet(self, link: LinkPort, hello: LinkHello) -> None:
        wanted = (hello.version, hello.node, hello.instance) == (LINK_VERSION, "", self._gateway)
        if not wanted or hello.gateway not in self._others():
            link.close("it greets another gateway" if not wanted else "no such gateway lives")
            return
        for old in [end for end, gateway in self._ends.items() if gateway == hello.gateway]:
            old.close("its gateway has a new one")
        self._ends[link] = hello.gateway
        link.send(hello)
