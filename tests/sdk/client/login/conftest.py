"""What tests of logging in share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotlight.client.login.issuer_client import IssuerClient, IssuerEndpoints
from pilotlight_core.model.api.issuer_api import LoginInfo
from tests.fixtures.identity_provider import API, IdentityProvider
from tests.sdk.scripted import ScriptedPlatform


@pytest.fixture
async def issuer() -> AsyncIterator[IssuerClient]:
    async with IssuerClient() as client:
        yield client


@pytest.fixture
def info(identity_provider: IdentityProvider) -> LoginInfo:
    """As a platform shows the provider."""
    return LoginInfo(
        name="corp", url=identity_provider.url, client_id="pilotlight-cli", scope="openid offline_access",
        parameters={"resource": API},
    )  # fmt: skip


@pytest.fixture
def scripted(platform: ScriptedPlatform) -> IssuerEndpoints:
    """An issuer that says what a test likes."""
    return IssuerEndpoints(
        issuer=platform.url, token_endpoint=f"{platform.url}/token", authorization_endpoint=f"{platform.url}/auth",
        device_authorization_endpoint=f"{platform.url}/device",
    )  # fmt: skip
