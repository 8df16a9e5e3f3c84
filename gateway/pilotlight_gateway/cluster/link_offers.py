"""Links to other hosts: offered on the bus to agents, or gateways, and opened for who proves that it was asked.

Who is asked is who the bus says: it delivers an offer to that node's agent, or that gateway, and to nobody else. The
secret in it is good for one connection to this gateway's listener for agents, within seconds. Whom the bus knows no
longer has no link either: one that has not been heard there for five seconds, or whose identity is not what it was when
its link began, loses it, and its calls are those of a node that is gone. A gateway that has no bus itself hears of no
revocation: after five seconds it ends all of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import msgspec

from pilotlight_core.bus import BusError
from pilotlight_core.links import TO_GATEWAY, Link
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.link_messages import LinkHello, LinkOffer
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.agent_links import BETWEEN_HOSTS, AgentKey
from pilotlight_gateway.cluster.driver_port import DriverPort
from pilotlight_gateway.cluster.link_door import LinkDoor

OFFERS_AT_ONCE = 32
"""In a second: each is a connection with its TLS, and all agents look for a gateway that has just begun."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Between two offers to one that does not come, or does not stay."""
MOST_HOST_LINKS = 1024
"""Agents of other hosts; those beyond have the bus."""
INSTANCE = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What a process calls itself, which others tell us: it becomes a part of a subject."""
UNHEARD_S = 5.0
"""After the bus is back: by then all who live were heard. As long may it be gone before no link is believed."""


@dataclass(kw_only=True)
class OfferPace:
    """When one is offered a link again."""

    pause_s: float = SHORTEST_PAUSE_S / 2
    again_at: float = float("-inf")
    linked_at: float | None = None


class LinkOffers:
    """Offers links from this gateway to agents, or to other gateways.

    Args:
        door: where who was asked comes in.
        ends: get the links.
        port: to the bus, on which they are offered.
        url: of the listener, as others reach it.
        identity: what is on record of one, at an instant; None: it is to have no link.
        decoder: reads what they send.
    """

    def __init__(
        self,
        door: LinkDoor,
        ends: AgentEnds,
        port: DriverPort,
        url: str,
        *,
        region: str,
        gateway: str,
        identity: Callable[[AgentKey], object | None],
        decoder: msgspec.msgpack.Decoder[Any] = TO_GATEWAY,
        keeps_unheard: bool = False,
    ) -> None:
        self._door = door
        self._ends = ends
        self._port = port
        self._url = url
        self._region = region
        self._gateway = gateway
        self._identity = identity
        self._decoder = decoder
        self._keeps_unheard = keeps_unheard
        self._paces: dict[str, OfferPace] = {}
        """By node, and not by what its agent calls itself each time; of gateways by that."""
        self._open: dict[AgentKey, tuple[Link, object]] = {}
        """The links that were made here, until they have ended, and whose they are by what was on record."""
        self._hears_from = float("-inf")
        """From when on the silence of others says something."""
        self._deaf_since: float | None = None
        """Since when the bus is gone."""

    def tick(self, living: Iterable[AgentKey], far: Iterable[AgentKey]) -> None:
        """Call it each second: with those that were heard on the bus lately, and of these those of other hosts."""
        at, linked, heard = self._port.clock(), set(self._ends.agents()), frozenset(living)
        self._open = {agent: found for agent, found in self._open.items() if found[0].is_open}
        self._end_those_out(heard, at)
        names = {node or instance for node, instance in heard}
        self._paces = {name: pace for name, pace in self._paces.items() if name in names}
        room = min(OFFERS_AT_ONCE, MOST_HOST_LINKS - len(self._ends))
        for agent in far:
            if room > 0 and agent not in linked and self._offer(agent, at):
                room -= 1

    def _offer(self, agent: AgentKey, at: float) -> bool:
        node, instance = agent
        if INSTANCE.fullmatch(instance) is None:
            return False
        pace = self._paces.setdefault(node or instance, OfferPace())
        if pace.linked_at is not None and at - pace.linked_at > LONGEST_PAUSE_S:
            pace.pause_s = SHORTEST_PAUSE_S / 2  # its last one was a good one
        if at < pace.again_at or (identity := self._identity(agent)) is None:
            return False
        pace.linked_at, pace.pause_s = None, min(2 * pace.pause_s, LONGEST_PAUSE_S)
        pace.again_at = at + pace.pause_s
        hello = LinkHello(link=token(), gateway=self._gateway, node=node, instance=instance)
        offer = LinkOffer(hello=hello, url=self._url, secret=token() + token())
        try:
            self._port.send(subjects.link_offers(self._region, node, instance), offer)
        except BusError:
            return False
        self._door.expect(offer, partial(self._opened, hello, identity))
        return True

    def _opened(self, hello: LinkHello, identity: object, transport: asyncio.Transport) -> Link:
        """Who was asked has come."""
        link = Link(self._ends, self._decoder, asyncio.get_running_loop(), keeps_unheard=self._keeps_unheard)
        transport.set_protocol(cast("asyncio.Protocol", link))  # compiled, so it inherits from no class of the library
        link.connection_made(transport)
        agent = (hello.node, hello.instance)
        present = self._identity(agent)
        if present is None or present != identity or agent in set(self._ends.agents()):
            link.close("it has a link by now, or its identity has ended")
            return link
        if len(self._ends) >= MOST_HOST_LINKS:
            link.close("there are as many links as there may be")
            return link
        if (pace := self._paces.get(hello.node or hello.instance)) is not None:
            pace.linked_at = self._port.clock()
        self._open[agent] = (link, identity)
        self._ends.begin(link, hello, BETWEEN_HOSTS)
        return link

    def _end_those_out(self, heard: frozenset[AgentKey], at: float) -> None:
        """While our own connection to the bus is gone, or just back, silence says nothing."""
        if self._port.connected:
            self._deaf_since = None
        else:
            self._hears_from = at + UNHEARD_S
            self._deaf_since = at if self._deaf_since is None else self._deaf_since
        is_deaf = self._deaf_since is not None and at - self._deaf_since >= UNHEARD_S
        for agent, (link, identity) in list(self._open.items()):
            if self._identity(agent) != identity:
                link.close("its identity has ended")
            elif is_deaf:
                link.close("the bus is gone, and nobody says who is revoked")
            elif at >= self._hears_from and agent not in heard:
                link.close("it is not heard on the bus")
