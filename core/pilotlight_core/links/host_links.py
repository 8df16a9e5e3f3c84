"""Links to gateways of other hosts: whoever is offered one on the bus connects to that gateway, and proves itself.

The gateway listens where agents leave large bodies, with the same certificate; neither agents nor nodes have an address
that others must reach. A link is never in clear where the bus is not.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

import structlog

from pilotlight_core.authorities import believe_gateways
from pilotlight_core.links.accepted_ends import AcceptedEnds
from pilotlight_core.links.link import Link
from pilotlight_core.links.link_requests import (
    HEAD_END,
    MOST_HEAD_BYTES,
    LinkAddress,
    address_of_link,
    is_proof,
    link_request,
    new_nonce,
    proof_in_answer,
    proof_of_listener,
)
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.link_messages import LINK_VERSION, LinkHello, LinkOffer
from pilotlight_core.trusted_context import TrustedContext

CALL_S = 5.0
"""From an offer to a link: a name, a connection, TLS and an answer."""
MOST_CALLS = 16
"""Connections under way at a time; gateways offer again."""

log = structlog.get_logger(__name__)


class NoLink(Exception):
    """The gateway that has offered a link has not made one."""


class LinkCaller:
    """Takes the offers that are made to an agent, or to a gateway, whose `node` is "".

    Args:
        ends: get the links.
        make_link: one of these, not connected yet.
        spawn: runs a job that never raises.
        plain: whether the bus is in clear, so that links may be.
        ca_file: of authorities that gateways' certificates may be of, beside certifi's.
    """

    def __init__(
        self,
        ends: AcceptedEnds,
        make_link: Callable[[], Link],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        *,
        node: str,
        instance: str,
        plain: bool,
        ca_file: str,
    ) -> None:
        self._ends = ends
        self._make_link = make_link
        self._spawn = spawn
        self._node = node
        self._instance = instance
        self._plain = plain
        self._ca_file = ca_file
        self._context: ssl.SSLContext | None = None
        self._calling: set[str] = set()
        """Gateways that are being connected to."""

    def on_offer(self, _subject: str, message: object, _reply: str) -> None:
        """A gateway offers a link, on the bus's subject for that."""
        if not isinstance(message, LinkOffer):
            return
        hello = message.hello
        if (hello.version, hello.node, hello.instance) != (LINK_VERSION, self._node, self._instance):
            return
        address = address_of_link(message.url)
        if address is None or not (address.tls or self._plain):
            log.warning(
                "a link was offered that would be in clear, though the bus is not: the bus is the way",
                gateway=hello.gateway, url=message.url,
            )  # fmt: skip
        elif hello.gateway not in self._calling and len(self._calling) < MOST_CALLS:
            self._calling.add(hello.gateway)
            self._spawn(self._call(message, address))

    async def _call(self, offer: LinkOffer, address: LinkAddress) -> None:
        gateway = offer.hello.gateway
        try:
            await asyncio.wait_for(self._connect(offer, address), CALL_S)
        except (OSError, ValueError, ImportError, NoLink, BadInput) as error:  # a timeout and ssl's are OSErrors
            log.info(
                "a gateway that offers a link was not reached: the bus is the way",
                gateway=gateway, url=offer.url, error=str(error) or type(error).__name__,
            )  # fmt: skip
        finally:
            self._calling.discard(gateway)

    async def _connect(self, offer: LinkOffer, address: LinkAddress) -> None:
        if address.tls and self._context is None:
            self._context = await asyncio.to_thread(_believed, self._ca_file)
        loop = asyncio.get_running_loop()
        begun = LinkCall(offer, address, self._take, loop.create_future())
        transport, _ = await loop.create_connection(
            lambda: begun, address.host, address.port, ssl=self._context if address.tls else None
        )
        try:
            if why := await begun.ended:
                raise NoLink(why)
        finally:
            if not begun.is_linked:
                transport.abort()

    def _take(self, transport: asyncio.Transport, hello: LinkHello) -> Link:
        link = self._make_link()
        self._ends.expect(link, hello)
        transport.set_protocol(cast("asyncio.Protocol", link))
        link.connection_made(transport)
        return link


def _believed(ca_file: str) -> ssl.SSLContext:
    make = partial(believe_gateways, ca_file)
    return TrustedContext(make, ca_file) if ca_file else make()


class LinkCall(asyncio.Protocol):
    """One connection, from our request to its answer; then it is a link's.

    `take` makes it one, and returns the link. `ended` says why it is none, once that is known; "": it is one.
    """

    def __init__(
        self,
        offer: LinkOffer,
        address: LinkAddress,
        take: Callable[[asyncio.Transport, LinkHello], Link],
        ended: asyncio.Future[str],
    ) -> None:
        self._offer = offer
        self._address = address
        self._take = take
        self._nonce = new_nonce()
        self._read = b""
        self._transport: asyncio.Transport | None = None
        self.ended = ended
        self.is_linked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(link_request(self._offer, self._address, self._nonce))

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, rest = self._read.partition(HEAD_END)
        if not end:
            if len(self._read) > MOST_HEAD_BYTES:
                self._fail("its answer does not end")
            return
        expected = proof_of_listener(self._offer.secret, self._offer.hello.link, self._nonce)
        if not (given := proof_in_answer(head)):
            self._fail(f"it answers {head[:80].splitlines()[:1]}")
        elif not is_proof(given, expected):
            self._fail("it does not know the secret of the offer")
        elif self._transport is not None and not self.ended.done():
            self.is_linked = True
            self.ended.set_result("")
            link = self._take(self._transport, self._offer.hello)
            if rest:
                link.data_received(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(str(exc) if exc is not None else "it has closed the connection")

    def _fail(self, why: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        if not self.ended.done():
            self.ended.set_result(why)
