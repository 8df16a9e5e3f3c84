"""Closes connections of the bus, through the servers' own account: the only user there, who may do this and no more."""

from __future__ import annotations

import asyncio

import msgspec

from pilotlight_core.bus.bus import Bus
from pilotlight_core.bus.bus_errors import BusError
from pilotlight_core.bus.bus_users import SERVER, connection_keeper
from pilotlight_core.model.ids import token

ASKED_S = 0.5
"""Each server of a cluster answers for itself, and nobody knows how many there are."""


class _ServerName(msgspec.Struct):
    id: str


class _Connection(msgspec.Struct):
    cid: int


class _Connections(msgspec.Struct):
    connections: list[_Connection] = []


class _Page(msgspec.Struct):
    server: _ServerName
    data: _Connections = msgspec.field(default_factory=_Connections)


class OpenConnections:
    """Of all servers; `bus` is a connection as `connection_keeper`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def close(self, user: str) -> int:
        """Close what is open of a user; how many connections.

        Raises:
            BusError: the servers could not be asked.
        """
        found = await self._find(user)
        for server, connection in found:
            # A server does nothing for who wants no answer.
            reply, asked = f"{connection_keeper().inbox}.done", msgspec.json.encode({"cid": connection})
            self._bus.publish_data(f"{SERVER}.{server}.KICK", asked, reply=reply)
        if found:
            await self._bus.flush()
        return len(found)

    async def _find(self, user: str) -> list[tuple[str, int]]:
        pages: list[_Page] = []

        def receive(_: str, page: object, __: str) -> None:
            if isinstance(page, _Page):
                pages.append(page)

        inbox = f"{connection_keeper().inbox}.{token()}"
        heard = await self._bus.subscribe(inbox, receive, read=msgspec.json.Decoder(_Page).decode)
        try:
            asked = msgspec.json.encode({"auth": True, "user": user, "limit": 1024})
            self._bus.publish_data(f"{SERVER}.PING.CONNZ", asked, reply=inbox)
            await asyncio.sleep(ASKED_S)
        finally:
            await heard.unsubscribe()
        if not pages:
            raise BusError("No server of the bus says which connections it has.")
        return [(page.server.id, one.cid) for page in pages for one in page.data.connections]
