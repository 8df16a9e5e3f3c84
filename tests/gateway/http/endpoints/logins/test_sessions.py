"""Sessions over HTTP."""

from __future__ import annotations

import pytest

from tests.gateway.world import World


async def test_a_key_opens_a_session_which_does_what_the_key_does(world: World) -> None:
    """Whoever opened and ended it is in the audit log."""
    async with world.client() as client:
        made = (await client.post("/v1/sessions")).json()
    async with world.client(made["token"]) as browser:
        shown = (await browser.get("/v1/sessions/current")).json()
        apps = await browser.get("/v1/apps")
        more = await browser.post("/v1/sessions")
        ended = await browser.delete("/v1/sessions/current")
        after = await browser.get("/v1/apps")

    assert shown == {"tenant": "acme", "key": world.key.id, "scopes": ["admin"], "expires_at": made["expires_at"]}
    assert [one.status_code for one in (apps, more, ended, after)] == [200, 403, 204, 401]
    told = [(one.operation, one.status, one.key) for one in world.audit.records if one.status]
    assert told == [
        ("openSession", 201, world.key.id), ("openSession", 403, world.key.id), ("endSession", 204, world.key.id),
    ]  # fmt: skip
    assert made["token"] not in str(world.audit.records)


async def test_a_link_is_exchanged_once_without_a_key(world: World) -> None:
    """Its code is no token."""
    async with world.client() as client:
        made = (await client.post("/v1/sessions", json={"link": True})).json()
    assert made["token"] == ""
    async with world.client("") as stranger:
        first = await stranger.post("/v1/sessions/exchange", json={"code": made["code"]})
        second = await stranger.post("/v1/sessions/exchange", json={"code": made["code"]})
    async with world.client(first.json()["token"]) as browser:
        assert (await browser.get("/v1/sessions/current")).json()["tenant"] == "acme"
    assert (first.status_code, second.status_code) == (201, 401)


@pytest.mark.parametrize(
    ("body", "status"), [({"code": "pl_login_x"}, 422), ({}, 422), ({"code": f"pl_login_{'x' * 43}"}, 401)]
)
async def test_what_is_no_code_is_refused(world: World, body: dict[str, str], status: int) -> None:
    """By its form, or because there is none like it."""
    async with world.client("") as stranger:
        assert (await stranger.post("/v1/sessions/exchange", json=body)).status_code == status
