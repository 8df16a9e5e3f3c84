"""The listener for agents, where a connection may become a link: all bounds of HTTP hold until it does.

Who sends nothing, or half a head, or no proof, is any client of the listener: counted by its address, timed, and closed
with a 404. Only an offer that was proved ends that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, cast

from pilotlight_core.links.link_requests import (
    LINKS_PATH,
    NONCE,
    PROOF,
    REFUSED_LINK,
    UPGRADE,
    header_of,
    link_answer,
)
from pilotlight_gateway.http.server import BoundedProtocol


class Claimed(Protocol):
    """An offer of ours that the client has proved to know."""

    @property
    def proof(self) -> str:
        """That we know it too."""
        ...

    @property
    def open(self) -> Callable[[asyncio.Transport], object]:
        """Makes the connection a link."""
        ...


class Door(Protocol):
    """Knows which links were offered."""

    def claim(self, link: str, nonce: str, proof: str) -> Claimed | None:
        """Take an offer; None: it is none, or was not proved."""
        ...


class LinkingProtocol(BoundedProtocol):
    """One connection to the listener for agents."""

    def __init__(self, door: Door, *args: Any, **uvicorns: Any) -> None:
        super().__init__(*args, **uvicorns)
        self._door = door

    def _should_upgrade(self) -> bool:
        return self._get_upgrade() == UPGRADE

    def handle_websocket_upgrade(self) -> None:
        """Uvicorn's name for what comes behind the head of a request that `_should_upgrade`."""
        claimed = self._claimed()
        if claimed is None:
            self.transport.write(REFUSED_LINK)
            self.transport.close()
            return
        self.forget()
        self.transport.write(link_answer(claimed.proof))
        claimed.open(self.transport)

    def _claimed(self) -> Claimed | None:
        path, former = self.url.decode("latin-1"), cast("object", self.cycle)
        if former is not None or self.parser.get_method() != b"GET" or not path.startswith(LINKS_PATH):
            return None
        nonce, proof = header_of(self.headers, NONCE), header_of(self.headers, PROOF)
        return self._door.claim(path.removeprefix(LINKS_PATH), nonce, proof) if nonce and proof else None
