"""What a gateway's listener for agents asks about links: which were offered, and whether somebody was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from pilotlight_core.links import Link
from pilotlight_core.links.link_requests import is_proof, proof_of_caller, proof_of_listener
from pilotlight_core.model.messages.link_messages import LinkOffer

OFFERED_S = 10.0
"""How long an offer is good."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class OfferedLink:
    """An offer that waits for its connection, of which `open` makes a link."""

    offer: LinkOffer
    expires_at: float
    open: Callable[[asyncio.Transport], Link]


@dataclass(frozen=True, kw_only=True)
class ClaimedLink:
    """An offer that somebody has proved to know; our proof, and what makes the connection a link, once."""

    proof: str
    open: Callable[[asyncio.Transport], Link]


class LinkDoor:
    """The offers of a gateway that wait, by the names of their links."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[str, OfferedLink] = {}
        """The oldest first."""

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, offer: LinkOffer, opens: Callable[[asyncio.Transport], Link]) -> None:
        """Somebody was asked to connect, within `OFFERED_S`."""
        at = self._clock()
        while self._waiting and (first := next(iter(self._waiting.values()))).expires_at <= at:
            del self._waiting[first.offer.hello.link]
        self._waiting[offer.hello.link] = OfferedLink(offer=offer, expires_at=at + OFFERED_S, open=opens)

    def claim(self, link: str, nonce: str, proof: str) -> ClaimedLink | None:
        """Take the offer of who proves to know its secret; None: there is none, or the proof is wrong."""
        offered = self._waiting.get(link)
        if offered is None or offered.expires_at <= self._clock():
            return None
        secret = offered.offer.secret
        if not is_proof(proof, proof_of_caller(secret, link, nonce)):
            log.warning("a stranger at a link that was offered", node=offered.offer.hello.node)
            return None
        del self._waiting[link]
        return ClaimedLink(proof=proof_of_listener(secret, link, nonce), open=offered.open)
