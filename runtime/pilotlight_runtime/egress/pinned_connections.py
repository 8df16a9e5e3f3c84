"""Connections to hosts by name, which is resolved here; all its addresses are vetted, and one of them is connected to.

A name that answers otherwise the next time (DNS rebinding) gains nothing: nobody resolves it between the check and the
connection. What is kept of answers is vetted anew for each connection.

The tenant is told one thing alone of a name without a public address, whether nobody knows it or it leads inside: else
it could find out what stands there. The reason is in the agent's log.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address

import structlog

from pilotlight_core.host.outbound.address_policy import Address, Network, vetted
from pilotlight_core.host.outbound.name_resolver import Resolve
from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.egress.own_addresses import is_own_address
from pilotlight_runtime.egress.proxy_requests import RefusedRequest

RESOLVE_S = 5.0
CONNECT_S = 5.0
"""For each address, of which `ADDRESSES` are tried."""
ADDRESSES = 3
KEPT_S = 30.0
"""An answer of a name server."""
NARROW_BYTES = 128 * 1024
MOST_KEPT = 1024
MOST_ADDRESSES = 32
"""Of a name; each costs something to vet, and is kept."""
LOGGED_S = 10.0
"""A tenant's refused names are in the log once in so long."""
TENANTS_LOGGED = 1024
NOT_PUBLIC = "may not be connected to: it has no address, or not only public ones"
log = structlog.get_logger(__name__)


class PinnedConnections:
    """Connects for tenants. Networks of `allowed` may be reached although not public."""

    def __init__(
        self, resolve: Resolve, allowed: Sequence[Network], clock: Callable[[], float], *, kept_s: float = KEPT_S
    ) -> None:
        self._resolve = resolve
        self._allowed = allowed
        self._clock = clock
        self._kept_s = kept_s
        self._logged_from = OrderedDict[str, float]()
        """By tenant, from when on a refused name is logged again."""
        self._kept: OrderedDict[tuple[str, str], tuple[float, Sequence[str]]] = OrderedDict()

    async def open(self, tenant: str, host: str, port: int, *, is_wide: bool = True) -> socket.socket:
        """A connected, non-blocking socket; one that is not wide is sent `NARROW_BYTES` before they are read.

        Raises:
            RefusedRequest: the host's address may not be connected to, or cannot be.
        """
        for address in self._vetted(tenant, host, await self._addresses(tenant, host, port))[:ADDRESSES]:
            self._check_is_not_own(tenant, host, address)
            try:
                async with asyncio.timeout(CONNECT_S):
                    return await _connected(address, port, is_wide=is_wide)
            except (OSError, TimeoutError):
                continue
        raise RefusedRequest(502, f"{host}:{port} does not answer")

    def _vetted(self, tenant: str, host: str, found: Sequence[str]) -> tuple[Address, ...]:
        try:
            return vetted(found, self._allowed)
        except (BadInput, ValueError) as error:
            why = error.detail if isinstance(error, BadInput) else "an address of the name cannot be read"
            raise self._refused(tenant, host, why) from None

    def _check_is_not_own(self, tenant: str, host: str, address: Address) -> None:
        if any(address in network for network in self._allowed):
            return
        try:
            why = "an address of the name is this host's own" if is_own_address(address) else ""
        except OSError as error:
            why = f"it cannot be told whether an address of the name is this host's own: {error}"
        if why:
            raise self._refused(tenant, host, why)

    def _refused(self, tenant: str, host: str, why: str) -> RefusedRequest:
        now = self._clock()
        if now >= self._logged_from.get(tenant, now):
            self._logged_from[tenant] = now + LOGGED_S
            self._logged_from.move_to_end(tenant)
            if len(self._logged_from) > TENANTS_LOGGED:
                self._logged_from.popitem(last=False)
            log.info("a name may not be connected to", tenant=tenant, host=host, why=why)
        return RefusedRequest(403, f"{host} {NOT_PUBLIC}")

    async def _addresses(self, tenant: str, host: str, port: int) -> Sequence[str]:
        key, now = (tenant, host), self._clock()  # a tenant does not see by the time it takes what others resolve
        at, found = self._kept.get(key, (0.0, ()))
        if found and now - at < self._kept_s:
            return found
        try:
            async with asyncio.timeout(RESOLVE_S):
                found = await self._resolve(tenant, host, port)
        except (OSError, UnicodeError, TimeoutError):
            raise self._refused(tenant, host, "its name cannot be resolved") from None
        if len(found) > MOST_ADDRESSES:
            raise self._refused(tenant, host, f"its name has more than {MOST_ADDRESSES} addresses")
        self._kept[key] = now, found
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found


async def _connected(address: Address, port: int, *, is_wide: bool) -> socket.socket:
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)  # noqa: FBT003 - its only argument
        if not is_wide:  # before it connects, since that agrees how far ahead may be sent
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW_BYTES)
        await asyncio.get_running_loop().sock_connect(made, (str(address), port))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        made.close()
        raise
    return made
