"""Logging in by a code, at a certified provider, and at issuers that do what they should not."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from pilotlight.client.login.device_flow import (
    INTERVAL_S,
    SLOWER_S,
    DeviceCode,
    begin_device_flow,
    next_pause,
    poll_device_flow,
)
from pilotlight.client.login.issued_tokens import read_claims
from pilotlight.client.login.issuer_client import IssuerAnswer, IssuerClient, IssuerEndpoints, LoginFailed
from pilotlight_core.model.api.issuer_api import LoginInfo
from tests.fixtures.identity_provider import API, IdentityProvider
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

CODE = DeviceCode(code="d", user_code="U", url="https://x", whole_url="", interval_s=5.0, expires_in_s=60.0)


class Sleeps:
    """Notes how long was slept, and does something meanwhile."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)

    def clock(self) -> float:
        return sum(self.slept)


async def test_a_person_agrees_at_a_real_provider(
    identity_provider: IdentityProvider, issuer: IssuerClient, info: LoginInfo
) -> None:
    """After the first question: the tokens are for the platform, and there is one to renew them by."""
    endpoints, slept = await issuer.find_endpoints(info.url), Sleeps()
    code = await begin_device_flow(issuer, endpoints, info)
    assert (code.interval_s, code.expires_in_s) == (INTERVAL_S, 600.0)
    assert code.user_code in code.whole_url

    async def agree(seconds: float) -> None:
        await slept(seconds)
        if len(slept.slept) == 2:
            await asyncio.to_thread(identity_provider.visit, code.whole_url, "ada:acme-corp:engineers")

    found = await poll_device_flow(issuer, endpoints, info, code, agree)
    claims = read_claims(found.access_token)
    assert (claims["aud"], claims["org"], claims["groups"]) == (API, "acme-corp", ["engineers"])
    assert found.refresh_token
    assert slept.slept == [INTERVAL_S] * 2


async def test_a_person_refuses_at_a_real_provider(
    identity_provider: IdentityProvider, issuer: IssuerClient, info: LoginInfo
) -> None:
    endpoints = await issuer.find_endpoints(info.url)
    code = await begin_device_flow(issuer, endpoints, info)

    async def refuse(_: float) -> None:
        await asyncio.to_thread(identity_provider.visit, code.whole_url, "eve", agrees=False)

    with pytest.raises(LoginFailed, match="not agreed"):
        await poll_device_flow(issuer, endpoints, info, code, refuse)


async def test_who_asks_too_often_asks_less_often(
    platform: ScriptedPlatform, scripted: IssuerEndpoints, issuer: IssuerClient, info: LoginInfo
) -> None:
    """And an issuer that is away may be back in time."""
    platform.will(
        "POST", "/token", answer({"error": "authorization_pending"}, 400), answer({"error": "slow_down"}, 400),
        Answer(status=502), answer({"access_token": "t"}),
    )  # fmt: skip
    slept = Sleeps()
    assert (await poll_device_flow(issuer, scripted, info, CODE, slept)).access_token == "t"
    assert slept.slept == [5.0, 5.0, 5.0 + SLOWER_S, 5.0 + 2 * SLOWER_S]


async def test_a_code_ends(
    platform: ScriptedPlatform, scripted: IssuerEndpoints, issuer: IssuerClient, info: LoginInfo
) -> None:
    """By the issuer's word, or by time."""
    platform.will("POST", "/token", answer({"error": "authorization_pending"}, 400))
    slept = Sleeps()
    with pytest.raises(LoginFailed, match="expired"):
        await poll_device_flow(issuer, scripted, info, CODE, slept, slept.clock)
    assert len(platform.requests) == 12


async def test_nobody_sleeps_longer_than_the_code_lives(
    platform: ScriptedPlatform, scripted: IssuerEndpoints, issuer: IssuerClient, info: LoginInfo
) -> None:
    """Whatever the issuer has said of how often it wants to be asked."""
    platform.will("POST", "/token", answer({"error": "authorization_pending"}, 400))
    slept = Sleeps()
    with pytest.raises(LoginFailed, match="expired"):
        await poll_device_flow(issuer, scripted, info, replace(CODE, interval_s=1e9), slept, slept.clock)
    assert slept.slept == [60.0]


@pytest.mark.parametrize("error", ["expired_token", "access_denied", "invalid_grant", "server_error"])
def test_what_is_final(error: str) -> None:
    with pytest.raises(LoginFailed):
        next_pause(IssuerAnswer(error=error), 5.0)


async def test_an_issuer_without_codes(
    platform: ScriptedPlatform, scripted: IssuerEndpoints, issuer: IssuerClient, info: LoginInfo
) -> None:
    """It has no such endpoint, refuses, or gives none."""
    none = IssuerEndpoints(issuer=platform.url, token_endpoint=scripted.token_endpoint)
    with pytest.raises(LoginFailed, match="--browser"):
        await begin_device_flow(issuer, none, info)
    platform.will("POST", "/device", answer({"error": "unauthorized_client"}, 401), answer({"device_code": "d"}))
    for said in ("unauthorized_client", "no code"):
        with pytest.raises(LoginFailed, match=said):
            await begin_device_flow(issuer, scripted, info)
