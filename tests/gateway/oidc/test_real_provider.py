"""A gateway against a certified provider, over HTTP: nothing of its tokens, keys or pages is ours."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from pilotlight_gateway.oidc.issuer_keys import UNKNOWN_KEY_S, IssuerKeys
from pilotlight_gateway.oidc.issuers import Issuers
from pilotlight_gateway.oidc.jwks_source import HttpJwksSource
from pilotlight_gateway.oidc.token_authenticator import TokenAuthenticator
from pilotlight_gateway.tenancy.auth import KeyAuthenticator
from tests.fixtures.identity_provider import API, IdentityProvider, provider_running
from tests.gateway.world import World
from tests.variants import with_variants

ISSUER: dict[str, Any] = {
    "audience": API, "client_id": "pilotlight-cli", "tenant_claim": "org", "tenants": {"acme-corp": "acme"},
    "groups": {"robots": ["invoke"], "engineers": ["invoke", "deploy"]}, "login_parameters": {"resource": API},
}  # fmt: skip


@asynccontextmanager
async def platform_of(world: World, provider: IdentityProvider) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway that has put the provider on record by asking it; the client of an operator."""
    source = HttpJwksSource()
    world.wall.at = time.time()
    keys = IssuerKeys(source, world.registry.issuers, clock=world.clock)
    tokens = TokenAuthenticator(world.registry, keys, clock=world.clock, wall=world.wall)
    world.services.issuers = Issuers(source=source, keys=keys, tokens=tokens)
    world.services.authenticator = KeyAuthenticator(world.registry, tokens, clock=world.clock, wall=world.wall)
    async with keys.running(), world.client(world.operator) as operator:
        answer = await operator.put("/v1/issuers/corp", json=ISSUER | {"url": provider.url})
        assert answer.status_code == 200, answer.text
        assert answer.json()["jwks_url"] == f"{provider.url}/jwks"
        yield operator
    await source.aclose()


async def asks(world: World, token: str) -> httpx.Response:
    async with world.client(token) as client:
        return await client.get("/v1/whoami")


@pytest.mark.parametrize("algorithm", with_variants(["RS256", "ES256", "Ed25519"], 1))
async def test_its_tokens_are_taken(world: World, algorithm: str) -> None:
    """Of each kind of key; a program's, with the scopes of its group."""
    with provider_running(algorithm=algorithm) as provider:
        async with platform_of(world, provider):
            found = await asks(world, provider.robot_token())
            assert found.status_code == 200, found.text
            about = found.json()
            assert (about["tenant"], about["scopes"], about["subject"]) == ("acme", ["invoke"], "robot")


async def test_its_new_keys_are_found(world: World) -> None:
    """It starts anew with other keys: its new tokens are taken, the old ones end with what is remembered of them."""
    with provider_running() as provider:
        async with platform_of(world, provider):
            old = provider.robot_token()
            assert (await asks(world, old)).status_code == 200
            port = provider.port
            world.clock.at += UNKNOWN_KEY_S
    with provider_running(port=port) as provider:
        async with platform_of(world, provider):
            assert (await asks(world, provider.robot_token())).status_code == 200
            assert (await asks(world, old)).json()["code"] == "token_invalid"


async def test_keys_change_under_a_running_gateway(world: World) -> None:
    """While it is away, what is known of it goes on; what is signed anew needs its new keys."""
    with ExitStack() as life:
        provider = life.enter_context(provider_running())
        first, second = provider.robot_token(), provider.robot_token()
        async with platform_of(world, provider):
            assert (await asks(world, first)).status_code == 200
            life.close()
            for known in (first, second):
                assert (await asks(world, known)).status_code == 200
            world.clock.at += UNKNOWN_KEY_S
            again = life.enter_context(provider_running(port=provider.port))
            assert (await asks(world, again.robot_token())).status_code == 200


async def test_a_token_for_another_service_is_refused(world: World, identity_provider: IdentityProvider) -> None:
    """Good as it is, it is not for this platform."""
    async with platform_of(world, identity_provider) as operator:
        other = ISSUER | {"url": identity_provider.url, "audience": "https://other.test/api"}
        assert (await operator.put("/v1/issuers/corp", json=other)).status_code == 200
        refused = await asks(world, identity_provider.robot_token())
        assert (refused.status_code, refused.json()["code"]) == (401, "token_invalid")


async def test_an_opaque_token_is_none(world: World, identity_provider: IdentityProvider) -> None:
    """Without an audience the provider gives tokens that only itself can read."""
    async with platform_of(world, identity_provider):
        assert (await asks(world, identity_provider.robot_token(resource=None))).status_code == 401


async def test_of_a_person_the_token_for_the_platform_counts(world: World, identity_provider: IdentityProvider) -> None:
    """The access token where the audience is the platform's own, the id token where it is the client; never the
    other one, and never the one that renews them."""
    tokens = await asyncio.to_thread(identity_provider.person_tokens, "ada:acme-corp:engineers,cooks")
    async with platform_of(world, identity_provider) as operator:
        for audience, good, bad in ((API, "access_token", "id_token"), ("pilotlight-cli", "id_token", "access_token")):
            body = ISSUER | {"url": identity_provider.url, "audience": audience}
            assert (await operator.put("/v1/issuers/corp", json=body)).status_code == 200
            ada = (await asks(world, tokens[good])).json()
            assert (ada["tenant"], ada["scopes"], ada["subject"][:4]) == ("acme", ["invoke", "deploy"], "ada:")
            for other in (bad, "refresh_token"):
                assert (await asks(world, tokens[other])).status_code == 401
