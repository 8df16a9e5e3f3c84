"""What an agent and its proxy tell each other, each in one packet of a socket between them."""

from __future__ import annotations

import msgspec

MOST_PACKET = 64 * 1024
"""Bytes; the targets of one container are the largest."""


class ProxyMessage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The base of all."""


class OpenWay(ProxyMessage, frozen=True, kw_only=True):
    """Serve a container; the socket on which it connects comes with it."""

    container: str
    tenant: str
    function: str
    """`tenant:app.function`."""
    targets: tuple[str, ...]
    """As `network_targets` reads them."""
    is_index: bool = False
    """Whether they are the operator's own, whose hosts may be addresses too."""


class CloseWay(ProxyMessage, frozen=True, kw_only=True):
    """End a container's connections, and count it a last time."""

    container: str


class CountedBytes(ProxyMessage, frozen=True, kw_only=True):
    """From the proxy: what a container has had so far, each second in which that changed."""

    container: str
    sent: int
    received: int
    connections: int
    refused: int
    """Connections that were not made."""
    is_last: bool = False


class ProxyBeat(ProxyMessage, frozen=True, kw_only=True):
    """From the proxy, each second: it still comes round to all that it serves."""


ToProxy = OpenWay | CloseWay
FromProxy = CountedBytes | ProxyBeat
