"""What proxies forward counts only from those that the operator has named."""

from __future__ import annotations

from ipaddress import ip_network

import httpx
import pytest

from pilotlight_gateway.http.protocol.forwarded_scheme import client_scheme
from tests.gateway.world import World, function

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


@pytest.mark.parametrize(("named", "scheme"), [("127.0.0.1/32", "https"), ("10.0.0.0/8", "http")])
async def test_documents_name_the_scheme_by_which_clients_came(world: World, named: str, scheme: str) -> None:
    """Behind a proxy that ends TLS, if it is named."""
    world.services.proxies = (ip_network(named),)
    world.deploy(function())
    transport = httpx.ASGITransport(world.app, client=("127.0.0.1", 1))
    headers = {"authorization": f"Bearer {world.key}", "x-forwarded-proto": "https"}

    async with httpx.AsyncClient(transport=transport, base_url="http://gpu.example", headers=headers) as client:
        document = (await client.get("/v1/functions/shop.hello/openapi.json")).json()

    assert document["servers"] == [{"url": f"{scheme}://gpu.example"}]
