"""The agent's ends of links to gateways, and the change between link and bus.

A gateway that has a link gets all it is told over it: frames, and the credits of this node's containers, in one order,
since an old credit that comes after a call's last frame would take the freed slot again for a second. All others get
the same over the bus.

The ways change at a `LinkSwitch` on the bus. When a link ends, what its gateway has not confirmed is told again over
the bus, in order, and before any later credit. It may get that twice, which frames allow: chunks and grants have
numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

import structlog

from pilotlight_core.bus import BusDown, BusError
from pilotlight_core.links import LinkPort
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.link_messages import LINK_VERSION, LinkHello, LinkSwitch
from pilotlight_core.model.messages.message import Message

MOST_LINKS = 64
"""Gateways."""

log = structlog.get_logger(__name__)


class Publisher(Protocol):
    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        """Raises BusError when the message was not sent."""


class GatewayLinks:
    """A `Greeter`: the links that stand, by gateway.

    When one has ended, `resend(gateway, messages)` is called, and then `ended()`.
    """

    def __init__(self, bus: Publisher, *, region: str, node: str, instance: str) -> None:
        self._bus = bus
        self._region = region
        self._node = node
        self._instance = instance
        self._links: dict[str, tuple[LinkPort, str]] = {}
        """Gateway -> its link, and the link's name."""
        self.resend: Callable[[str, list[Message]], None] = lambda _gateway, _messages: None
        self.ended: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return len(self._links)

    def send(self, gateway: str, message: Message) -> bool:
        """Tell a gateway over its link; False: it has none."""
        found = self._links.get(gateway)
        if found is None:
            return False
        found[0].send(message)
        return True

    def flush(self, gateway: str) -> None:
        """Send what is due to a gateway over its link now."""
        if (found := self._links.get(gateway)) is not None:
            found[0].flush()

    def send_all(self, message: Message) -> None:
        """Tell every gateway that has a link."""
        for link, _ in list(self._links.values()):
            link.send(message)

    def greeted(self, link: LinkPort, hello: LinkHello) -> None:
        """A gateway greets: from now on its link is the way to it, unless it wants another agent."""
        wanted = (hello.version, hello.node, hello.instance) == (LINK_VERSION, self._node, self._instance)
        if not wanted or len(self._links) >= MOST_LINKS:
            link.close("it greets another agent" if not wanted else "there are too many links")
            return
        if (old := self._links.get(hello.gateway)) is not None:
            old[0].close("its gateway has a new one")
        try:
            self._publish(hello.gateway, LinkSwitch(link=hello.link))
        except BusDown:
            link.close("there is no bus on which to say so")
            return
        self._links[hello.gateway] = (link, hello.link)
        link.send(hello)
        log.info("a gateway has a link", gateway=hello.gateway)

    def closed(self, link: LinkPort) -> None:
        """A link has ended: the bus is the way again."""
        gateway = next((gateway for gateway, (known, _) in self._links.items() if known is link), "")
        if not gateway:
            return
        _, name = self._links.pop(gateway)
        with contextlib.suppress(BusError):  # then the gateway hears of nothing else either
            self._publish(gateway, LinkSwitch(link=name, over=True))
        self.resend(gateway, link.unheard())
        self.ended()

    def _publish(self, gateway: str, switch: LinkSwitch) -> None:
        self._bus.publish_nowait(subjects.reply(self._region, gateway, self._node), switch)
