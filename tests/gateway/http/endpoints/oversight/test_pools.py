"""Pools over HTTP, for operators."""

from __future__ import annotations

from tests.builders.pools import launch
from tests.gateway.world import World

LOCAL = {"types": [{"name": "local", "gpus": "1xT4"}], "most_nodes": 2}


async def test_an_operator_makes_shows_drains_and_removes_a_pool(world: World) -> None:
    """What is there is shown with it."""
    async with world.client(world.operator) as client:
        made = await client.put("/v1/pools/here", json=LOCAL)
        world.registry.launch_records["here.1"] = launch(1, world.registry.pool_records["here"])
        shown = await client.get("/v1/pools/here")
        listed = await client.get("/v1/pools")
        drained = await client.post("/v1/pools/here/drain")
        early = await client.delete("/v1/pools/here")
        world.registry.launch_records.clear()
        removed = await client.delete("/v1/pools/here")
        gone = await client.get("/v1/pools/here")

    assert (made.status_code, made.json()["terms"]["most_nodes"], made.json()["state"]) == (200, 2, "open")
    assert [machine["node"] for machine in shown.json()["machines"]] == ["here-n1"]
    assert listed.json()["pools"] == [shown.json()]
    assert drained.json()["state"] == "draining"
    assert [answer.status_code for answer in (early, removed, gone)] == [409, 204, 404]


async def test_what_is_wrong_is_named(world: World) -> None:
    """A field that there is not, too."""
    async with world.client(world.operator) as client:
        bodies: list[dict[str, object]] = [
            {"types": []},
            LOCAL | {"most_node": 1},
            LOCAL | {"fallback": "nobody"},
            LOCAL | {"budgets": [{"reasons": ["underutilized"]}]},
        ]
        wrong = [await client.put("/v1/pools/here", json=body) for body in bodies]
    assert [answer.status_code for answer in wrong] == [422, 422, 422, 422]
    assert wrong[2].json()["field"] == "fallback"
    assert "underutilized" in wrong[3].json()["detail"]


async def test_a_tenant_sees_no_pools(world: World) -> None:
    """Nor makes any."""
    async with world.client() as client:
        refused = [await client.get("/v1/pools"), await client.put("/v1/pools/here", json=LOCAL)]
    assert [answer.status_code for answer in refused] == [403, 403]
