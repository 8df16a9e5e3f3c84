"""Connections to hosts by name, which is resolved here; all its addresses are vetted, and one of them is connected to.

A name that answers otherwise the next time (DNS rebinding) gains nothing: nobody resolves it between the check and the
connection. What is kept of answers is vetted anew for each connection.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address

from pilotlight_core.host.outbound.address_policy import Address, Network, vetted
from pilotlight_core.host.outbound.name_resolver import Resolve
from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.egress.proxy_requests import RefusedRequest

RESOLVE_S = 5.0
CONNECT_S = 5.0
"""For each address, of which `ADDRESSES` are tried."""
ADDRESSES = 3
KEPT_S = 30.0
"""An answer of a name server."""
MOST_KEPT = 1024


class PinnedConnections:
    """Connects for tenants. Networks of `allowed` may be reached although not public."""

    def __init__(
        self, resolve: Resolve, allowed: Sequence[Network], clock: Callable[[], float], *, kept_s: float = KEPT_S
    ) -> None:
        self._resolve = resolve
        self._allowed = allowed
        self._clock = clock
        self._kept_s = kept_s
        self._kept: OrderedDict[tuple[str, str], tuple[float, Sequence[str]]] = OrderedDict()

    async def open(self, tenant: str, host: str, port: int) -> socket.socket:
        """A connected, non-blocking socket.

        Raises:
            RefusedRequest: the host's address may not be connected to, or cannot be.
        """
        addresses = self._vetted(host, await self._addresses(tenant, host, port))
        for address in addresses[:ADDRESSES]:
            try:
                async with asyncio.timeout(CONNECT_S):
                    return await _connected(address, port)
            except (OSError, TimeoutError):
                continue
        raise RefusedRequest(502, f"{host}:{port} does not answer")

    def _vetted(self, host: str, found: Sequence[str]) -> tuple[Address, ...]:
        try:
            addresses = vetted(found, self._allowed)
        except (BadInput, ValueError) as error:
            why = error.detail if isinstance(error, BadInput) else "an address of the name cannot be read"
            raise RefusedRequest(403, f"{host} may not be connected to: {why}") from None
        for address in addresses:
            if not any(address in network for network in self._allowed) and is_own_address(address):
                raise RefusedRequest(403, f"{host} may not be connected to: an address of the name is this host's own")
        return addresses

    async def _addresses(self, tenant: str, host: str, port: int) -> Sequence[str]:
        key, now = (tenant, host), self._clock()  # a tenant does not see by the time it takes what others resolve
        at, found = self._kept.get(key, (0.0, ()))
        if found and now - at < self._kept_s:
            return found
        try:
            async with asyncio.timeout(RESOLVE_S):
                found = await self._resolve(tenant, host, port)
        except (OSError, UnicodeError, TimeoutError):
            raise RefusedRequest(502, f"{host} has no address: its name cannot be resolved") from None
        self._kept[key] = now, found
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found


def is_own_address(address: Address) -> bool:
    """Whether this host itself would be reached: behind its own address may stand what trusts its neighbours."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((str(address), 9))  # which sends nothing; the kernel chooses the way
        except OSError:
            return False  # there is no way there
        return str(asking.getsockname()[0]) == str(address)


async def _connected(address: Address, port: int) -> socket.socket:
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)  # noqa: FBT003 - its only argument
        await asyncio.get_running_loop().sock_connect(made, (str(address), port))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        made.close()
        raise
    return made
