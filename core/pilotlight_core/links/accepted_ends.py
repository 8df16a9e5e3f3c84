"""The ends of links that others have dialled, from their connection over their greeting to their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pilotlight_core.links.link import LinkPort
from pilotlight_core.model.messages.link_messages import LinkHello


class Greeter(Protocol):
    """Decides who may link."""

    def greeted(self, link: LinkPort, hello: LinkHello) -> None:
        """The other end has greeted: greet back, or close the link."""
        ...

    def closed(self, link: LinkPort) -> None:
        """A link whose other end had greeted has ended."""
        ...


class AcceptedEnds:
    """A `LinkOwner`: what has greeted is passed on to `received(messages)`, in groups."""

    def __init__(self, greeter: Greeter, received: Callable[[list[Any]], None], most: int) -> None:
        """`most` ends are kept at a time."""
        self._greeter = greeter
        self._received = received
        self._most = most
        self._ends: dict[LinkPort, bool] = {}
        """Each end, and whether it has greeted."""
        self._expected: dict[LinkPort, LinkHello] = {}
        """What those have to greet with that were offered to us."""

    def expect(self, link: LinkPort, hello: LinkHello) -> None:
        """A link is going to open whose other end is known: it greets so and not otherwise."""
        self._expected[link] = hello

    def opened(self, link: LinkPort) -> None:
        """See `LinkOwner`."""
        if len(self._ends) >= self._most:
            link.close("there are too many links")
        else:
            self._ends[link] = False

    def received(self, link: LinkPort, messages: list[Any]) -> None:
        """See `LinkOwner`."""
        if self._ends.get(link):
            self._received(messages)
        elif len(messages) == 1 and isinstance(messages[0], LinkHello) and self._may_greet(link, messages[0]):
            self._ends[link] = True
            self._greeter.greeted(link, messages[0])
        else:
            link.close("it does not greet")

    def _may_greet(self, link: LinkPort, hello: LinkHello) -> bool:
        return link in self._ends and self._expected.pop(link, hello) == hello

    def closed(self, link: LinkPort) -> None:
        """See `LinkOwner`."""
        self._expected.pop(link, None)
        if self._ends.pop(link, False):
            self._greeter.closed(link)

    def tick(self) -> None:
        """Call it each second."""
        for link in list(self._ends):
            link.tick()

    def close_all(self, reason: str) -> None:
        """End every link; the bus is the way for what is left to say."""
        for link in list(self._ends):
            link.close(reason)
