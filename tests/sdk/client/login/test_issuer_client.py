"""Requests to an issuer: what is asked, what is believed, and how it fails."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight.client.login.issuer_client import (
    WELL_KNOWN,
    IssuerClient,
    IssuerEndpoints,
    IssuerUnreachable,
    endpoints_fault,
)
from tests.fixtures.identity_provider import IdentityProvider
from tests.sdk.scripted import Answer, ScriptedPlatform, answer


async def test_a_real_issuers_document(identity_provider: IdentityProvider, issuer: IssuerClient) -> None:
    found = await issuer.find_endpoints(identity_provider.url)
    assert found.token_endpoint == f"{identity_provider.url}/token"
    assert found.device_authorization_endpoint
    assert found.revocation_endpoint


async def test_a_document_is_its_issuers(platform: ScriptedPlatform, issuer: IssuerClient) -> None:
    """Or somebody could send a login elsewhere."""
    for given in (
        answer({"issuer": "https://evil.example.com", "token_endpoint": "https://evil.example.com/token"}),
        answer({"issuer": platform.url}),
        answer([]),
        answer({}, 302, location="https://evil.example.com"),
        Answer(pieces=[b"<html>"]),
        Answer(pieces=[b" " * 100_000] * 3),
    ):
        platform.will("GET", WELL_KNOWN, given)
        with pytest.raises(IssuerUnreachable):
            await issuer.find_endpoints(platform.url)
    assert {request.path for request in platform.requests} == {WELL_KNOWN}


@pytest.mark.parametrize("url", ["http://login.example.com", "http://169.254.169.254", "file:///etc/passwd", ""])
async def test_nothing_is_sent_in_clear(issuer: IssuerClient, url: str) -> None:
    """But on loopback."""
    with pytest.raises(IssuerUnreachable, match="is not asked"):
        await issuer.find_endpoints(url)
    with pytest.raises(IssuerUnreachable, match="is not asked"):
        await issuer.post(f"{url}/token", {})


def test_a_far_issuer_names_nothing_on_this_machine() -> None:
    """Nor an address in clear, in whichever field."""
    good = IssuerEndpoints(issuer="https://login.example.com", token_endpoint="https://api.example.com/token")
    assert endpoints_fault(good) == ""
    for url in ("http://127.0.0.1:6379/", "http://localhost/", "http://login.example.com/", "javascript:alert(1)"):
        for field in ("token_endpoint", "authorization_endpoint", "revocation_endpoint"):
            assert endpoints_fault(replace(good, **{field: url})).startswith(field)
    near = IssuerEndpoints(issuer="http://127.0.0.1:9", token_endpoint="http://127.0.0.1:9/token")
    assert endpoints_fault(near) == ""


async def test_answers_of_endpoints(platform: ScriptedPlatform, issuer: IssuerClient) -> None:
    """A refusal is an answer; a page is none."""
    platform.will("POST", "/token", answer({"error": "slow_down"}, 400), Answer(status=502, pieces=[b"Bad Gateway"]))
    assert (await issuer.post(f"{platform.url}/token", {"a": "b c"})).error == "slow_down"
    assert platform.requests[0].body == b"a=b+c"
    with pytest.raises(IssuerUnreachable, match="502"):
        await issuer.post(f"{platform.url}/token", {})
    with pytest.raises(IssuerUnreachable):
        await issuer.post("http://127.0.0.1:1/token", {})


async def test_what_answers_nothing_of_use(platform: ScriptedPlatform, issuer: IssuerClient) -> None:
    platform.will("POST", "/revoke", Answer(status=200), Answer(status=400))
    await issuer.send(f"{platform.url}/revoke", {})
    with pytest.raises(IssuerUnreachable):
        await issuer.send(f"{platform.url}/revoke", {})
