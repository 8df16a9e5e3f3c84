"""URLs that could never be sent to are refused when a webhook is made, without a question to anybody."""

from __future__ import annotations

import pytest

from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.webhooks.webhook_urls import check_url

LOOPBACK = read_networks("127.0.0.1")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://2130706433/", "https://0x7f.1/",
        "https://127.1/", "https://localhost/", "https://metadata/", "https://example.com:99999/",
        "https://169.254.169.254/latest/meta-data", "https://[00]/", "https://example.com/\n", "https://me@example.com/",
        "https://example.com/#x", "https://example.com/ü", "https://example.com:0/",
    ],
)  # fmt: skip
def test_what_would_never_be_sent_to_is_refused_at_once(url: str) -> None:
    """Without a question to anybody."""
    with pytest.raises(BadInput, match="url: "):
        check_url(url, ())


def test_what_is_allowed_by_name_is_not() -> None:
    """Public names always; where the operator allows addresses, plain http and plain names may mean them."""
    check_url("https://hooks.example.com:8443/x?y=z", ())
    check_url("https://8.8.8.8/", ())
    check_url("http://127.0.0.1:9000/", LOOPBACK)
    check_url("http://receiver:9000/", LOOPBACK)
    with pytest.raises(BadInput, match="refused address"):
        check_url("http://127.0.0.2:9000/", LOOPBACK)
    with pytest.raises(BadInput, match="--webhook-allow"):
        check_url("http://127.0.0.1:9000/", ())
