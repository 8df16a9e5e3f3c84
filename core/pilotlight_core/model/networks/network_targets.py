"""What a function may connect to (`network=`), and what its tenant's functions may be given. Pure.

    api.example.com:443            TLS whose server name is that host
    *.example.com:443              the same, of any host below it
    *:443                          the same, of any host
    http://mirror.example.com:80   requests in clear, whose Host is that host
    tcp://db.example.com:5432      any bytes

Hosts are names: an address has no name that TLS could show. What stands here is compared with what a client asks for,
letter by letter, so each name has one spelling: small ASCII letters, no dot at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

MOST_TARGETS = 64
"""Of a function."""
MOST_ALLOWED = 256
"""Of a tenant."""
LONGEST_NAME = 253
LONGEST_TARGET = 280
MARKS_KEPT = 4096
"""Of versions, each of which is asked about again and again."""
ANY = "*"
EXPECTED = 'expected a host and a port such as "api.example.com:443"'
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A last label that makes a name an IPv4 address to some resolvers: 127.1, 0x7f.1, 1.017700000001."""
_PORT = re.compile(r"[1-9][0-9]{0,4}")


class Transport(StrEnum):
    """What may be spoken with a target."""

    TLS = "tls"  # with the host as its server name
    HTTP = "http"  # requests in clear
    TCP = "tcp"  # anything


@dataclass(frozen=True)
class NetworkTarget:
    """A host, a pattern of hosts, or any, at one port."""

    transport: Transport
    host: str
    """A name, `*.` and a name, or `*`."""
    port: int

    def __str__(self) -> str:
        scheme = "" if self.transport is Transport.TLS else f"{self.transport}://"
        return f"{scheme}{self.host}:{self.port}"

    def admits(self, transport: Transport, host: str, port: int) -> bool:
        return self.transport is transport and self.port == port and _is_within(host, self.host)

    def covers(self, other: NetworkTarget) -> bool:
        """Whether all that the other admits is admitted by it."""
        return self.transport is other.transport and self.port == other.port and _is_within(other.host, self.host)


def parse_target(text: str) -> NetworkTarget:
    """Raises ValueError: what is wrong with it, as the rest of a sentence."""
    scheme, found, rest = text.rpartition("://")
    if found and scheme not in (Transport.HTTP, Transport.TCP):
        raise ValueError(f"{text!r}: TLS has no scheme here, http:// and tcp:// are the others; {EXPECTED}")
    host, _, port = rest.rpartition(":")
    if not host or not _PORT.fullmatch(port) or int(port) > 65_535:
        raise ValueError(f"{text!r}: {EXPECTED}")
    if host != ANY and (why := name_fault(host.removeprefix("*."))):
        raise ValueError(f"{text!r}: {why}")
    return NetworkTarget(Transport(scheme or Transport.TLS), host, int(port))


def name_fault(host: str) -> str:
    """Why a host cannot be connected to by this name, as the rest of a sentence; "" if it can."""
    if not host.isascii():
        return 'names are ASCII: write "xn--…"'
    if len(host) <= LONGEST_NAME and _NAME.fullmatch(host):
        return "name the host, not an address of it" if _NUMBER.fullmatch(host.rpartition(".")[2]) else ""
    if host != host.lower():
        return "names are in small letters"
    if ":" in host or "[" in host or "%" in host or _NUMBER.fullmatch(host):
        return "name the host, not an address of it"
    return "expected the full name of a host, such as api.example.com"


def targets_fault(texts: object, most: int = MOST_TARGETS) -> str:
    """Why these are no targets, as the rest of a sentence; "" if they are."""
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return f"{EXPECTED}, or a list of these"
    if len(texts) > most:
        return f"at most {most} are possible, not {len(texts)}"
    try:
        for text in texts:
            parse_target(text)
    except ValueError as error:
        return str(error)
    return "" if len(set(texts)) == len(texts) else "one of them stands there twice"


def given_targets(asked: Iterable[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """Those that are asked for and allowed, in order. All are right."""
    policy, wanted = [parse_target(text) for text in allowed], [(text, parse_target(text)) for text in asked]
    return tuple(text for text, target in wanted if any(each.covers(target) for each in policy))


def mark_given(asked: Sequence[str], given: Iterable[str]) -> int:
    """Which of those that are asked for are given, each a bit; a report of all of them would be large."""
    return sum(1 << asked.index(text) for text in set(given))


def is_beyond(mark: int, asked: Sequence[str], allowed: Sequence[str]) -> bool:
    """Whether more is given than is allowed now."""
    return mark & ~_mark_allowed(tuple(asked), tuple(allowed)) != 0


@lru_cache(MARKS_KEPT)
def _mark_allowed(asked: tuple[str, ...], allowed: tuple[str, ...]) -> int:
    return mark_given(asked, given_targets(asked, allowed))


def _is_within(host: str, pattern: str) -> bool:
    """Whether a host, or all hosts of a pattern, are of another pattern."""
    if pattern == ANY or host == pattern:
        return True
    return pattern.startswith("*.") and host.removeprefix("*").endswith(pattern[1:])
