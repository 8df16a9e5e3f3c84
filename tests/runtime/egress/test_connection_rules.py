"""Whether a container may have a connection."""

from __future__ import annotations

import pytest

from pilotlight_core.model.networks.network_targets import Transport, parse_target
from pilotlight_runtime.egress.connection_rules import index_target, transport_of
from pilotlight_runtime.egress.proxy_requests import ProxyRequest, RefusedRequest

TARGETS = tuple(map(parse_target, ("*.example.com:443", "http://m.example.com:80", "tcp://db.example.com:5432")))


def tunnel(host: str, port: int) -> ProxyRequest:
    return ProxyRequest(host, port)


def clear(host: str, port: int) -> ProxyRequest:
    return ProxyRequest(host, port, b"GET / HTTP/1.1\r\n\r\n")


def test_each_is_given_as_it_was_named() -> None:
    """TLS, requests in clear, and anything."""
    assert transport_of(tunnel("api.example.com", 443), TARGETS) is Transport.TLS
    assert transport_of(tunnel("db.example.com", 5432), TARGETS) is Transport.TCP
    assert transport_of(clear("m.example.com", 80), TARGETS) is Transport.HTTP


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (tunnel("example.org", 443), "example.org:443 is not in network= of this function"),
        (tunnel("api.example.com", 444), "is not in network="),
        (tunnel("m.example.com", 80), "in clear only"),
        (clear("api.example.com", 443), "use https://"),
        (clear("api.example.com", 80), "is not in network="),
        (tunnel("169.254.169.254", 80), "not an address"),
        (tunnel("[::1]", 443), "not an address"),
        (tunnel("[::ffff:127.0.0.1]", 443), "not an address"),
        (tunnel("2130706433", 443), "not an address"),
        (tunnel("0x7f.1", 443), "not an address"),
        (tunnel("api.example.com.", 443), "the full name"),
        (tunnel("localhost", 443), "the full name"),
        (tunnel("*.example.com", 443), "the full name"),
    ],
)
def test_others_are_refused(request_: ProxyRequest, reason: str) -> None:
    """With the reason, which repeats nothing but a host's name."""
    with pytest.raises(RefusedRequest) as caught:
        transport_of(request_, TARGETS)
    assert caught.value.status == 403
    assert reason in caught.value.reason


def test_any_host_is_no_address() -> None:
    """Who may go everywhere goes there by name."""
    anywhere = (parse_target("*:443"),)
    assert transport_of(tunnel("metadata.example.org", 443), anywhere) is Transport.TLS
    for host in ("10.0.0.1", "[fe80::1]", "1", "0x1.2"):
        with pytest.raises(RefusedRequest):
            transport_of(tunnel(host, 443), anywhere)


def test_an_operators_own_target_may_be_an_address() -> None:
    """That one alone: a builder's index may be inside. Others are refused as before."""
    targets = tuple(
        map(index_target, ("http://10.0.0.5:8080", "files.example.com:443", "localhost:8443", "10.0.0.6:443"))
    )

    assert transport_of(clear("10.0.0.5", 8080), targets, is_index=True) is Transport.HTTP
    assert transport_of(tunnel("files.example.com", 443), targets, is_index=True) is Transport.TLS
    assert transport_of(tunnel("localhost", 8443), targets, is_index=True) is Transport.TLS
    # Who asks for an address names no host as TLS begins.
    assert transport_of(tunnel("10.0.0.6", 443), targets, is_index=True) is Transport.TCP
    for request in (clear("10.0.0.6", 8080), clear("10.0.0.5", 80), tunnel("169.254.169.254", 80)):
        with pytest.raises(RefusedRequest):
            transport_of(request, targets, is_index=True)
