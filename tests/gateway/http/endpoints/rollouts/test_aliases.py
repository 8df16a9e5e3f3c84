"""Aliases over HTTP."""

from __future__ import annotations

from tests.gateway.world import World, function

ALIAS = "/v1/apps/shop/aliases/hello/prod"


async def test_an_alias_is_set_shown_called_and_deleted(world: World) -> None:
    """By its owner, as any resource."""
    (version,) = world.deploy(function("hello"))
    async with world.client() as client:
        put = await client.put(ALIAS, json={"version": "v1"})
        shown = await client.get(ALIAS)
        listed = await client.get("/v1/apps/shop/aliases")
        called = await client.post("/v1/functions/shop.hello@prod/calls", json={"input": {"name": "x"}})
        gone = await client.delete(ALIAS)
        refused = await client.post("/v1/functions/shop.hello@prod/calls", json={"input": {"name": "x"}})
        absent = await client.get(ALIAS)

    expected = {
        "function": "hello", "alias": "prod", "ref": "shop.hello@prod", "version": "shop.hello@v1",
        "version_id": version.id, "withdrawn": False,
    }  # fmt: skip
    assert put.json() == shown.json() == expected
    assert listed.json() == {"app": "shop", "aliases": [expected]}
    assert (called.status_code, gone.status_code, absent.status_code) == (200, 204, 404)
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown_version")
    assert [(one.operation, one.told) for one in world.audit.records if one.status == 200] == [
        ("putAlias", {"version": "v1"})
    ]


async def test_an_alias_that_looks_like_a_version_is_refused(world: World) -> None:
    """The answer names what is wrong."""
    world.deploy(function("hello"))
    async with world.client() as client:
        refused = await client.put("/v1/apps/shop/aliases/hello/v7", json={"version": "v1"})

    assert (refused.status_code, refused.json()["field"]) == (422, "alias")


async def test_a_call_by_an_alias_is_on_no_side(world: World) -> None:
    """It is a pin: no rollout concerns it."""
    world.deploy(function("hello"))
    async with world.client() as client:
        await client.put(ALIAS, json={"version": "v1"})
        await client.post("/v1/functions/shop.hello@prod/calls", json={"input": {"name": "x"}})
        await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": "x"}})

    assert [(call.side, call.split) for call in world.calls.seen] == [(None, -1), (None, 1)]
