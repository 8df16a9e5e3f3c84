"""Who may hold connections to a listener, and who has to go when there is no room for another. Pure.

A connection is *known* from the first request with a valid key on. What is not known is bounded for each address, and
does not live for long; when all places are taken, a connection without work goes for a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from math import inf
from typing import Protocol, TypeVar

from pilotlight_core.model.errors import TooMuch, Unavailable

IPV6_PREFIX = 64
"""Of the addresses that count as one: what a customer of a provider gets."""
ROOM_MADE = 0.01
"""The part of all places that is made free at once: looking for them takes as long as there are connections."""
REFUSED_S = 5.0
LOOK_AGAIN_S = 0.1
"""After a look at all connections that found none to close: until then new ones are refused without a look."""


@dataclass(frozen=True, kw_only=True)
class ConnectionBounds:
    """The bounds of a listener; None: there is none."""

    of_all: int = 10_000
    of_address: int | None = None
    unknown_of_address: int | None = None
    """Of these, connections that are not known."""
    unknown_seconds: float | None = None
    """How long a connection that is not known may live."""
    exempt: tuple[IPv4Network | IPv6Network, ...] = ()
    """Of the bounds of an address: reverse proxies, which speak for many."""


class Held(Protocol):
    """A connection, as the choice of who goes sees it."""

    @property
    def known(self) -> bool: ...

    @property
    def idle_since(self) -> float | None:
        """Since when it has no request under way; None: it has one."""


H = TypeVar("H", bound=Held)


def idlest(held: Iterable[H], at_most: int) -> Sequence[H]:
    """Who goes first: the unknown ones, then those that have been idle for longest; none that works."""
    idle = [(one.known, since, number, one) for number, one in enumerate(held) if (since := one.idle_since) is not None]
    return [one for *_, one in sorted(idle)[:at_most]]


@dataclass(frozen=True)
class ClientConnections:
    open: int
    known: int
    refused: dict[str, int]
    """By the bound that refused them."""
    closed: dict[str, int]
    """By why the gateway closed them."""


class ConnectionBook:
    """Counts the connections of a listener by address."""

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.bounds = bounds
        self._open: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._look_at = -inf
        self.refused: Counter[str] = Counter()
        self.closed: Counter[str] = Counter()

    def statistics(self) -> ClientConnections:
        held = self._open.total()
        return ClientConnections(held, held - self._unknown.total(), dict(self.refused), dict(self.closed))

    @property
    def full(self) -> bool:
        return self._open.total() >= self.bounds.of_all

    @property
    def room_to_make(self) -> int:
        """How many connections go when it is full."""
        return max(1, int(self.bounds.of_all * ROOM_MADE))

    def may_look(self, at: float) -> bool:
        """Whether a connection has to go for a new one, and looking for it is worth the time."""
        return self.full and at >= self._look_at

    def looked(self, at: float, *, found: int) -> None:
        """All connections were looked at, and `found` of them were closed."""
        if not found:
            self._look_at = at + LOOK_AGAIN_S

    def add(self, address: str) -> str:
        """Count a new connection, by its source, which is returned.

        Raises:
            TooMuch: its address has as many as it may. Unavailable: all places are taken.
        """
        source, bounds = source_of(address), self.bounds
        if source and not is_in_networks(address, bounds.exempt):
            self._check("connections_per_address", self._open[source], bounds.of_address, source, "")
            self._check(
                "unknown_connections_per_address", self._unknown[source], bounds.unknown_of_address, source,
                ", over which no request with a valid key has come,",
            )  # fmt: skip
        if self.full:
            self.refused["connections"] += 1
            raise Unavailable(
                f"This gateway has {bounds.of_all} connections, all with requests under way.", code="overloaded"
            )
        self._open[source] += 1
        self._unknown[source] += 1
        return source

    def mark_known(self, source: str) -> None:
        """A request with a valid key has come over one."""
        self._less(self._unknown, source)

    def remove(self, source: str, *, known: bool) -> None:
        """A connection has ended."""
        self._less(self._open, source)
        if not known:
            self._less(self._unknown, source)

    def _check(self, limit: str, held: int, allowed: int | None, source: str, which: str) -> None:
        if allowed is not None and held >= allowed:
            self.refused[limit] += 1
            raise TooMuch(
                f"{source} has {held} connections to this gateway{which} and may have {allowed} (the setting {limit}): "
                "close some, or send requests over those that are open.",
                retry_after=REFUSED_S,
            )

    @staticmethod
    def _less(counter: Counter[str], source: str) -> None:
        counter[source] -= 1
        if not counter[source]:
            del counter[source]


@lru_cache(4_096)
def source_of(address: str) -> str:
    """What counts as one: an IPv4 address, or the network of an IPv6 one; "" if there is none, as of a socket file."""
    if not address:
        return ""
    found = _read_address(address)
    return str(found) if isinstance(found, IPv4Address) else str(ip_network((found, IPV6_PREFIX), strict=False))


@lru_cache(4_096)
def is_in_networks(address: str, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """Whether an address is in a network: itself, and not what counts as one with it. What is no address is in none."""
    try:
        found = _read_address(address)
    except ValueError:
        return False
    return any(found in network for network in networks)


def _read_address(text: str) -> IPv4Address | IPv6Address:
    """The address, without its zone; an IPv4 one that is written as IPv6 is what it stands for. Raises ValueError."""
    found = ip_address(text.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found
