"""Which addresses are connected to."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.host.outbound.address_policy import literal, read_networks, vetted, why_refused
from pilotlight_core.model.errors import BadInput

NOT_PUBLIC = [
    "0.0.0.1", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:10.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1",
    "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_what_is_not_public_is_refused(text: str) -> None:
    """Private, loopback, link-local, multicast, metadata, and IPv6 that carries IPv4 of whatever kind."""
    assert why_refused(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_what_is_public_is_not(text: str) -> None:
    """Unicast addresses that the whole world can reach."""
    assert not why_refused(ip_address(text))


@given(st.ip_addresses())
def test_nothing_passes_that_is_not_global(address: IPv4Address | IPv6Address) -> None:
    """The library's own judgement is a second one."""
    if not why_refused(address):
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_private
        assert not address.is_reserved or address.version == 6


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_passes_in_ipv6_clothes(inner: IPv4Address) -> None:
    """Mapped, compatible, NAT64, 6to4."""
    for outer in (f"::ffff:{inner}", f"::{inner}", f"64:ff9b::{inner}", f"::ffff:0:{inner}"):
        assert why_refused(IPv6Address(outer))
    assert why_refused(IPv6Address((0x2002 << 112) | (int(inner) << 80)))


def test_the_operator_may_name_addresses() -> None:
    """Exactly those; a mapped form of one is not it."""
    allowed = read_networks("127.0.0.2, 10.8.0.0/16, fd00::/8")

    assert not why_refused(ip_address("127.0.0.2"), allowed)
    assert not why_refused(ip_address("10.8.255.1"), allowed)
    assert not why_refused(ip_address("fd12::1"), allowed)
    for text in ("127.0.0.1", "10.9.0.1", "::ffff:127.0.0.2"):
        assert why_refused(ip_address(text), allowed)
    with pytest.raises(BadInput, match=r"'10\.8\.0\.1/16' is no address or network"):
        read_networks("10.8.0.1/16")


def test_one_private_address_spoils_a_name() -> None:
    """A name that answers with both kinds is not connected to at all."""
    assert vetted(["8.8.8.8", "2606:4700::1111"], ()) == (ip_address("8.8.8.8"), ip_address("2606:4700::1111"))
    with pytest.raises(BadInput, match="an address of the name is refused: private"):
        vetted(["8.8.8.8", "10.0.0.1"], ())
    with pytest.raises(BadInput, match="no address"):
        vetted([], ())


def test_hosts_that_are_addresses_are_recognised() -> None:
    """With brackets or without."""
    assert literal("[::1]") == literal("::1") == ip_address("::1")
    assert literal("example.com") is None
