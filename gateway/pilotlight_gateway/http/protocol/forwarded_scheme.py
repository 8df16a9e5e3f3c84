"""How a client reached the platform: what a proxy says counts only if its address is a named one's.

Of all that proxies forward nothing else is read: who calls is told by a key or a certificate, not by an address.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network

from starlette.types import Scope

from pilotlight_gateway.limits.connections import is_in_networks

ProxyNetworks = tuple[IPv4Network | IPv6Network, ...]
FORWARDED_SCHEME = b"x-forwarded-proto"


def client_scheme(scope: Scope, proxies: ProxyNetworks) -> str:
    """http or https: the connection's, or what one of `proxies` has forwarded."""
    own, client = str(scope["scheme"]), scope.get("client")
    if not client or not is_in_networks(client[0], proxies):
        return own
    said = [value.strip().lower() for name, value in scope["headers"] if name == FORWARDED_SCHEME]
    return said[0].decode() if len(said) == 1 and said[0] in (b"http", b"https") else own
