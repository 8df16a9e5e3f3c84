"""Issuers over HTTP."""

from __future__ import annotations

import pytest
from msgspec import convert

from pilotlight.client.resources.issuers import IssuersClient
from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight_core.model.api.issuer_api import CallerInfo, IssuerRequest, LoginInfo
from tests.sdk.scripted import Answer, ScriptedPlatform, answer


@pytest.fixture
def issuers(connection: PlatformConnection) -> IssuersClient:
    return IssuersClient(PlatformClient(connection))


async def test_an_issuer_is_a_path(platform: ScriptedPlatform, issuers: IssuersClient) -> None:
    """A request for each word."""
    platform.will("GET", "/v1/issuers", answer({"issuers": [{"name": "corp"}]}))
    platform.will("PUT", "/v1/issuers/corp", answer({"name": "corp"}))
    platform.will("DELETE", "/v1/issuers/corp", Answer(status=204))
    request = IssuerRequest(url="https://login.example.com", audience="api", tenant="acme")

    assert await issuers.list_issuers() == [{"name": "corp"}]
    assert await issuers.set_issuer("corp", request) == {"name": "corp"}
    await issuers.remove_issuer("corp")
    assert convert(platform.requests[1].json, IssuerRequest) == request


async def test_who_logs_in_and_who_one_is(platform: ScriptedPlatform, issuers: IssuersClient) -> None:
    login = LoginInfo(name="corp", url="https://login.example.com", client_id="cli", scope="openid")
    platform.will("GET", "/v1/logins", answer({"logins": [login]}))
    platform.will("GET", "/v1/whoami", answer({"tenant": "acme", "key": "k", "scopes": ["invoke"]}))

    assert await issuers.list_logins() == (login,)
    assert await issuers.describe_caller() == CallerInfo(tenant="acme", key="k", scopes=("invoke",))
