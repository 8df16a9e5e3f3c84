"""Connections are counted by address, and by whether they are known."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network

import pytest

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.limits.connections import (
    LOOK_AGAIN_S,
    ConnectionBook,
    ConnectionBounds,
    idlest,
    is_in_networks,
    source_of,
)

BOUNDS = ConnectionBounds(of_all=6, of_address=3, unknown_of_address=2, exempt=(ip_network("10.0.0.0/8"),))


def refusal(book: ConnectionBook, address: str) -> tuple[str, str]:
    with pytest.raises(PilotlightError) as refused:
        book.add(address)
    return refused.value.wire_code, refused.value.detail


def test_an_address_has_few_connections_without_a_key_and_more_with_one() -> None:
    """The refusal names the setting; another address is not concerned."""
    book = ConnectionBook(BOUNDS)
    first = book.add("192.0.2.1")
    book.add("192.0.2.1")

    code, detail = refusal(book, "192.0.2.1")
    assert (code, "unknown_connections_per_address" in detail, "may have 2" in detail) == ("rate_limited", True, True)
    book.mark_known(first)
    book.add("192.0.2.1")
    assert "setting connections_per_address" in refusal(book, "192.0.2.1")[1]
    book.add("192.0.2.2")
    book.remove(first, known=True)
    assert book.statistics().open == 3
    assert book.statistics().known == 0
    assert book.statistics().refused == {"unknown_connections_per_address": 1, "connections_per_address": 1}


def test_proxies_are_bounded_by_all_places_only() -> None:
    """They speak for many; when all places are taken the refusal is the platform's."""
    book = ConnectionBook(BOUNDS)
    for _ in range(6):
        book.add("10.1.1.1")

    assert book.full
    assert refusal(book, "192.0.2.1")[0] == "overloaded"


def test_a_look_that_found_nobody_is_not_repeated_at_once() -> None:
    """It takes as long as there are connections; one that found somebody may be repeated, and none is needed before."""
    book = ConnectionBook(BOUNDS)
    assert not book.may_look(0.0)
    for _ in range(6):
        book.add("10.1.1.1")

    assert book.may_look(10.0)
    book.looked(10.0, found=1)
    assert book.may_look(10.0)
    book.looked(10.0, found=0)
    assert not book.may_look(10.0 + 0.9 * LOOK_AGAIN_S)
    assert book.may_look(10.0 + LOOK_AGAIN_S)


def test_what_has_ended_leaves_nothing() -> None:
    """Known or not."""
    book = ConnectionBook(BOUNDS)
    known, unknown = book.add("192.0.2.1"), book.add("192.0.2.1")
    book.mark_known(known)

    book.remove(known, known=True)
    book.remove(unknown, known=False)

    assert (book.statistics().open, book.statistics().known) == (0, 0)


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_addresses_of_one_customer_count_as_one(address: str, source: str) -> None:
    """An IPv6 network is; an IPv4 address is itself however it is written; a socket file has none."""
    assert source_of(address) == source


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("2001:db8::7", True),
        ("2001:db8::7%eth0", True),
        ("2001:db8::8", False),
        ("192.0.2.1", False),
        ("", False),
        ("/run/proxy.sock", False),
    ],
)
def test_a_proxy_is_named_by_its_own_address(address: str, named: bool) -> None:
    """By one of IPv6 too, whose network counts as one elsewhere; its neighbours there are not meant."""
    networks = (ip_network("10.0.0.0/8"), ip_network("2001:db8::7/128"))

    assert is_in_networks(address, networks) is named


def test_a_proxy_with_an_address_of_ipv6_is_exempt_and_its_neighbour_is_not() -> None:
    """They count as one source, and a proxy speaks for many."""
    book = ConnectionBook(ConnectionBounds(of_address=1, exempt=(ip_network("2001:db8::7/128"),)))
    for _ in range(3):
        book.add("2001:db8::7")

    assert refusal(book, "2001:db8::8")[0] == refusal(book, "2001:db8::9")[0]


@dataclass
class One:
    name: str
    idle_since: float | None
    known: bool = False


def test_who_has_no_key_goes_first_and_who_works_never() -> None:
    """Among equals, the one that has been idle for longest."""
    held = [
        One("works", None), One("rests", 1.0, known=True), One("young", 9.0), One("old", 5.0),
        One("rests less", 2.0, known=True),
    ]  # fmt: skip

    assert [one.name for one in idlest(held, 3)] == ["old", "young", "rests"]
    assert [one.name for one in idlest(held, 9)] == ["old", "young", "rests", "rests less"]
