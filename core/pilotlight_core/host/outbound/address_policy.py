"""Decides which addresses the platform connects to on behalf of a tenant. Pure.

Connections start in the platform's network, and must not reach what the tenant could not reach itself. Allowed are
public unicast addresses and those that the operator lists. IPv6 addresses that carry an IPv4 one (mapped, compatible,
6to4, NAT64, Teredo) are always refused: no receiver needs them, and other networks decide where they lead.

Sources: IANA's special-purpose address registries (RFC 6890), RFC 6052 (NAT64), the clouds' metadata addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from pilotlight_core.model.errors import BadInput

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared (carrier NAT, cloud metadata)"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "cloud metadata"),
        ("169.254.0.0/16", "link-local (cloud metadata)"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "special purpose"),
        ("192.0.2.0/24", "documentation"),
        ("192.31.196.0/24", "special purpose"),
        ("192.52.193.0/24", "special purpose"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("192.175.48.0/24", "special purpose"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("::ffff:0:0:0/96", "IPv4-translated"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("100::/64", "discard"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "special purpose"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("2620:4f:8000::/48", "special purpose"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
GLOBAL_IPV6 = IPv6Network("2000::/3")
"""The space that IANA has allocated."""


def read_networks(text: str, field: str = "webhook_allow") -> tuple[Network, ...]:
    """The networks of a list such as `10.1.2.3, 10.8.0.0/16`, which is the value of the setting `field`.

    Raises:
        BadInput: names a wrong entry.
    """
    found = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(ip_network(word))
        except ValueError as error:
            raise BadInput(f"{word!r} is no address or network: {error}.", field=field) from None
    return tuple(found)


def why_refused(address: Address, allowed: Iterable[Network] = ()) -> str:
    """The reason to refuse `address`; "" if it is allowed."""
    if any(address in network for network in allowed):
        return ""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "scoped"
    for network, why in REFUSED:
        if address in network:
            return why
    if isinstance(address, IPv6Address) and address not in GLOBAL_IPV6:
        return "not global"
    return "" if address.is_global else "not global"


def literal(host: str) -> Address | None:
    """The address in a URL's host, if it is one."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def vetted(found: Sequence[str], allowed: Sequence[Network]) -> tuple[Address, ...]:
    """The addresses of a name, if all are allowed: a private address beside a public one is an attack or an error.

    Raises:
        BadInput: one is refused, or there is none. It is not named, since it may be internal.
    """
    addresses = tuple(ip_address(text) for text in found)
    if not addresses:
        raise BadInput("the name has no address")
    for address in addresses:
        if why := why_refused(address, allowed):
            raise BadInput(f"an address of the name is refused: {why}")
    return addresses
