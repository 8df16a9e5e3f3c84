"""What proxies forward counts only from those that the operator has named."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from pilotlight_gateway.http.protocol.forwarded_scheme import client_scheme

PROXIES = (ip_network("10.1.0.0/16"), ip_network("2001:db8::7/128"))
HTTPS = (b"x-forwarded-proto", b"https")


def scheme(client: str | None, *headers: tuple[bytes, bytes], own: str = "http") -> str:
    return client_scheme({"scheme": own, "client": (client, 1) if client else None, "headers": list(headers)}, PROXIES)


@pytest.mark.parametrize("client", ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7"])
def test_a_named_proxy_is_believed(client: str) -> None:
    """For it alone has seen the client's connection."""
    assert scheme(client, HTTPS) == "https"
    assert scheme(client, (b"x-forwarded-proto", b"HTTP"), own="https") == "http"


@pytest.mark.parametrize("client", ["10.2.0.1", "2001:db8::8", "::1", "not an address", None])
def test_nobody_else_is(client: str | None) -> None:
    """Neither a client, nor a proxy that is not named."""
    assert scheme(client, HTTPS) == "http"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"x-forwarded-proto", b"ftp")],
        [HTTPS, HTTPS],
        [(b"x-forwarded-proto", b"https, http")],
        [(b"forwarded", b"proto=https")],
    ],
)
def test_what_is_no_scheme_leaves_the_connections(headers: list[tuple[bytes, bytes]]) -> None:
    """Also several: whoever is in between may have read another one."""
    assert scheme("10.1.2.3", *headers) == "http"
