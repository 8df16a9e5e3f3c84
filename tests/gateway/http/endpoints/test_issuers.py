"""Issuers, logins and who one is, over HTTP; and how refused tokens are answered."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.gateway.oidc.token_maker import RECORD, REQUEST, TokenMaker, on_record
from tests.gateway.world import WALL, World

MAKER = TokenMaker()
BODY = msgspec.to_builtins(REQUEST)


@pytest.fixture
async def corp(world: World) -> AsyncIterator[World]:
    """A platform with the issuer on record."""
    on_record(world, MAKER)
    async with world.issuer_keys.running():
        yield world


async def test_an_operator_sets_lists_and_removes(world: World) -> None:
    """Each change is in the audit log, with what was said."""
    async with world.client(world.operator) as operator:
        made = await operator.put("/v1/issuers/corp", json=BODY)
        assert made.status_code == 200, made.text
        shown = (await operator.get("/v1/issuers")).json()["issuers"]
        assert shown == [made.json()]
        assert (shown[0]["tenants"], shown[0]["keys"]) == ({"acme-corp": "acme"}, 0)
        assert (await operator.delete("/v1/issuers/corp")).status_code == 204
        assert (await operator.delete("/v1/issuers/corp")).status_code == 404
        assert (await operator.put("/v1/issuers/Corp", json=BODY)).status_code == 422
        assert (await operator.put("/v1/issuers/corp", json=BODY | {"algorithms": ["none"]})).status_code == 422
        assert (await operator.put("/v1/issuers/corp", json=BODY | {"secret": "x"})).status_code == 422
    done = [(entry.operation, entry.status) for entry in world.audit.records if entry.status == 200]
    assert ("setIssuer", 200) in done
    told = next(entry.told for entry in world.audit.records if entry.status == 200)
    assert (told["url"], told["groups"]) == (REQUEST.url, {"engineers": ("invoke", "deploy")})


async def test_logins_are_for_everybody(corp: World) -> None:
    """They are what a program needs before it has any key."""
    async with corp.client("") as client:
        answer = await client.get("/v1/logins")
        assert answer.json() == {
            "logins": [
                {
                    "name": "corp", "url": RECORD.url, "client_id": "cli", "scope": "openid offline_access",
                    "parameters": {}, "id_tokens": False,
                }
            ]
        }  # fmt: skip


async def test_who_one_is(corp: World) -> None:
    """By a token, and by a key; nobody without one."""
    async with corp.client(MAKER.token().decode()) as client:
        found = (await client.get("/v1/whoami")).json()
        assert found.pop("key").startswith("oidc-corp-")
        assert found == {
            "tenant": "acme", "scopes": ["invoke", "deploy"], "issuer": "corp", "subject": "ada",
            "expires_at": WALL + 330, "break_glass": False,
        }  # fmt: skip
    async with corp.client(corp.operator) as client:
        found = (await client.get("/v1/whoami")).json()
        assert (found["tenant"], found["scopes"], found["issuer"]) == ("platform", ["admin", "operator"], "")
    async with corp.client("") as client:
        assert (await client.get("/v1/whoami")).status_code == 401


async def test_a_token_is_as_a_key(corp: World) -> None:
    """Its scopes are held to, its tenant is whom it may see, and what it changed is under its name."""
    async with corp.client(MAKER.token().decode()) as client:
        assert (await client.get("/v1/apps")).json() == {"apps": []}
        assert (await client.get("/v1/keys")).status_code == 403
        assert (await client.get("/v1/tenants")).status_code == 403
        await client.post("/v1/apps/shop/stop")
    entry = next(entry for entry in corp.audit.records if entry.operation == "stopApp")
    assert (entry.tenant, entry.subject, entry.key[:10]) == ("acme", "ada", "oidc-corp-")


@pytest.mark.parametrize(
    ("token", "status", "code", "challenge"),
    [
        (MAKER.token(exp=WALL - 60), 401, "token_expired", 'Bearer realm="pilotlight", error="invalid_token"'),
        (MAKER.token(iss="https://evil"), 401, "token_invalid", 'Bearer realm="pilotlight", error="invalid_token"'),
        (TokenMaker().token(), 401, "token_invalid", 'Bearer realm="pilotlight", error="invalid_token"'),
        (MAKER.token(org="other"), 403, "no_access", None),
        (b"ey" + b"A" * 20_000, 401, "token_invalid", 'Bearer realm="pilotlight", error="invalid_token"'),
        (b"x" * 200, 401, "unauthenticated", 'Bearer realm="pilotlight"'),
    ],
)  # fmt: skip
async def test_a_refusal_says_what_to_do(
    corp: World, token: bytes, status: int, code: str, challenge: str | None
) -> None:
    async with corp.client(token.decode()) as client:
        for answer in (await client.get("/v1/apps"), await client.post("/v1/functions/shop.hello/calls", json={})):
            found = answer.json()
            assert (answer.status_code, found["code"]) == (status, code), found
            assert answer.headers.get("www-authenticate") == challenge
            assert "login" in found["advice"] or status == 403 or code == "unauthenticated"


async def test_a_silent_issuer_is_the_platforms_fault(corp: World) -> None:
    """503 with Retry-After; whoever has a key works on."""
    corp.jwks.silent = "cut"
    async with corp.client(MAKER.token().decode()) as client:
        answer = await client.get("/v1/apps")
        assert (answer.status_code, answer.json()["code"]) == (503, "issuer_unavailable")
        assert "retry-after" in answer.headers
    async with corp.client() as client:
        assert (await client.get("/v1/apps")).status_code == 200
