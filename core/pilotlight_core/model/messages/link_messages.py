"""What the two ends of a link say about the link itself.

A link is a connection between a gateway and an agent or another gateway that has no bus between them; both ends begin
it with a `LinkHello`. Between hosts the gateway listens, and a `LinkOffer` says on the bus where, with which secret.
"""

from __future__ import annotations

from pilotlight_core.model.bounded import Count, ShortText
from pilotlight_core.model.messages.message import Message

LINK_VERSION = 1
"""Of the frames: ends of different versions do not link."""


class LinkHello(Message, frozen=True, kw_only=True):
    """The first message of each end. The gateway says whom it wants, who repeats it if that is so."""

    version: Count = LINK_VERSION
    link: ShortText
    """The gateway's random name for this link."""
    gateway: ShortText
    node: ShortText
    """"": the other end is a gateway too."""
    instance: ShortText
    """The agent's incarnation, or the other gateway's process."""


class LinkOffer(Message, frozen=True, kw_only=True):
    """Gateway -> an agent or another gateway of another host, over the bus: connect within seconds.

    The bus takes it from gateways alone, and gives it to nobody but the one that is asked. So who knows the secret is
    that one, or the gateway.
    """

    hello: LinkHello
    """What the gateway will greet with."""
    url: ShortText
    secret: ShortText
    """Good for one connection."""


class LinkSwitch(Message, frozen=True, kw_only=True):
    """Agent -> gateway, over the bus: what follows for this gateway comes over the link, or again over the bus.

    It stands where the ways change: the gateway reads nothing of the link before the first, and nothing after the
    second, so neither way overtakes the other.
    """

    link: ShortText
    over: bool = False
    """Whether the bus is the way again."""
