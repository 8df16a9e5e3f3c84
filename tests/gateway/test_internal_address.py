"""Where the listener for large bodies may be, and as what agents may know it."""

from __future__ import annotations

import pytest

from pilotlight_gateway.internal_address import check_internal, link_url


@pytest.mark.parametrize(
    ("host", "port", "url", "plain"),
    [
        ("127.0.0.1", 0, "", False),
        ("::1", 8471, "http://[::1]:8471", False),
        ("127.0.0.1", 8471, "https://gw-1.internal:8472", False),
        ("127.0.0.1", 8471, "http://localhost:9000", False),
        ("10.0.0.5", 0, "", True),
        ("::", 8471, "http://gw-1:8471", True),
    ],
)
def test_what_agents_reach_and_nobody_reads(host: str, port: int, url: str, plain: bool) -> None:
    """Loopback, a proxy on this host that ends TLS, or a network of which the operator says that it is theirs alone."""
    check_internal(host, port, url, plain=plain)


@pytest.mark.parametrize(
    ("host", "port", "url", "plain", "says"),
    [
        (
            "10.0.0.5",
            0,
            "",
            False,
            r"loopback address, or a certificate .*, or --internal-plain .* in clear - at `\$\.internal_host`",
        ),
        ("10.0.0.5", 8471, "https://gw-1", False, r"loopback address.*\$\.internal_host"),
        ("gw-1", 0, "", True, r"expected an address, such as .*\$\.internal_host"),
        ("::", 8471, "", True, r"since :: names none - at `\$\.internal_url`"),
        (
            "127.0.0.1",
            8471,
            "http://gw-1:8471",
            False,
            r"expected https://, for a certificate of .* or a proxy .*\$\.internal_url",
        ),
        ("127.0.0.1", 0, "https://gw-1:8472", False, r"port to which --internal-url leads - at `\$\.internal_port`"),
        ("127.0.0.1", 8471, "https://gw-1:8472/", False, r"nothing behind it - at `\$\.internal_url`"),
        ("127.0.0.1", 8471, "https://a:b@gw-1", False, r"nothing behind it"),
        ("127.0.0.1", 8471, "https://gw-1:99999", False, r"nothing behind it"),
        ("127.0.0.1", 8471, "ftp://gw-1", False, r"nothing behind it"),
        ("127.0.0.1", 8471, "https://", False, r"nothing behind it"),
    ],
)
def test_what_others_could_read_or_nobody_could_reach(host: str, port: int, url: str, plain: bool, says: str) -> None:
    """It is refused with the setting that is wrong, and what to do."""
    with pytest.raises(ValueError, match=says):
        check_internal(host, port, url, plain=plain)


def test_a_listener_with_a_certificate_is_where_agents_reach_it() -> None:
    """At any address, and as https:// alone."""
    check_internal("10.0.0.5", 0, "", plain=False, tls=True)
    check_internal("0.0.0.0", 8471, "https://gw-1:8471", plain=False, tls=True)  # noqa: S104 - nothing is bound
    with pytest.raises(ValueError, match=r"expected https://, since the listener has a certificate.*internal_url"):
        check_internal("10.0.0.5", 8471, "http://10.0.0.5:8471", plain=True, tls=True)
    with pytest.raises(ValueError, match=r"since :: names none.*internal_url"):
        check_internal("::", 8471, "", plain=False, tls=True)


@pytest.mark.parametrize(
    ("url", "plain", "offered"),
    [
        ("https://gw-1:8471", False, True),
        ("https://gw-1:8471", True, True),
        ("http://10.0.0.5:8471", True, True),
        ("http://10.0.0.5:8471", False, False),
        ("https://127.0.0.1:8471", False, False),
        ("http://[::1]:8471", True, False),
        ("http://localhost:8471", True, False),
    ],
)
def test_links_are_offered_where_others_are_and_in_clear_only_beside_the_bus(
    url: str, plain: bool, offered: bool
) -> None:
    """Nobody on another host reaches loopback."""
    assert link_url(url, plain=plain) == (url if offered else "")
