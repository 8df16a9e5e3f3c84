"""Records of issuers: which addresses are asked at all."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_core.model.records.issuers import IssuerRecord, issuer_fault, named_url_fault, url_fault

RECORD = IssuerRecord(
    name="corp", url="https://login.example.com", audience="api", jwks_url="https://keys.example.com/", tenant="acme"
)


@pytest.mark.parametrize(
    "url", ["https://login.example.com", "https://10.0.0.1:8443/realms/a?b=c", "http://127.0.0.1:9/a", "http://[::1]/"]
)
def test_what_may_be_asked(url: str) -> None:
    """Also in the operator's own network, and on loopback without TLS."""
    assert url_fault(url) == ""


@pytest.mark.parametrize(
    "url",
    [
        "", "login", "http://login.example.com", "http://127.0.0.1.evil.com/", "http://127.0.0.2/", "ftp://127.0.0.1/",
        "https://", "https://[::1", "https://a:b@login.example.com", "https://login.example.com/#a", "https://h:x/",
        "javascript:alert(1)", "//127.0.0.1/", "HTTP://10.0.0.1",
    ],
)  # fmt: skip
def test_what_is_not_asked(url: str) -> None:
    assert url_fault(url)
    assert issuer_fault(replace(RECORD, url=url)).startswith("url: ")
    assert issuer_fault(replace(RECORD, jwks_url=url)).startswith("jwks_url: ")


def test_what_a_far_issuer_names_is_not_here() -> None:
    """Only one on loopback names what is on loopback."""
    assert named_url_fault("https://keys.example.com/", RECORD.url) == ""
    assert named_url_fault("http://127.0.0.1:9/keys", "http://localhost:9") == ""
    for url in ("http://127.0.0.1:9/", "https://localhost/", "http://[::1]/", "http://keys.example.com/"):
        assert named_url_fault(url, RECORD.url)


def test_a_record_that_can_hold() -> None:
    assert issuer_fault(RECORD) == ""
    assert not RECORD.takes_id_tokens
    assert replace(RECORD, audience="cli", client_id="cli").takes_id_tokens
