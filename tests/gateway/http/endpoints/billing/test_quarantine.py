"""What operators see of usage in quarantine."""

from __future__ import annotations

import pytest

from tests.gateway.ledger.metering import delivered, event
from tests.gateway.world import World


def fill(world: World) -> None:
    bad = [event(number, 0, 5, ppm=0, device="d\x1b[2J") for number in range(3)]
    world.ledger.fold("USAGE", 1, delivered(bad))


async def test_operators_see_what_cannot_be(world: World) -> None:
    """Page by page, and counted; nothing of it moves a terminal."""
    fill(world)
    async with world.client(world.add_key("acme", "operator")) as client:
        first = (await client.get("/v1/usage/quarantine?limit=2")).json()
        last = (await client.get(f"/v1/usage/quarantine?before={first['items'][-1]['id']}")).json()
        none = (await client.get("/v1/usage/quarantine?node=n1")).json()

    assert [item["reason"] for item in first["items"]] == ["bad_name"] * 2
    assert ["node-1.s0.2" in first["items"][0]["text"], "node-1.s0.0" in last["items"][0]["text"]] == [True, True]
    assert "\x1b" not in first["items"][0]["text"]
    assert first["counts"] == [{"node": "", "reason": "bad_name", "events": 3}]
    assert none == {"items": [], "counts": []}


async def test_tenants_see_nothing_of_it(world: World) -> None:
    """Not even an admin of a tenant."""
    fill(world)
    async with world.client() as client:
        assert (await client.get("/v1/usage/quarantine")).status_code == 403


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "before=x", "node=a.b"])
async def test_a_wrong_quarantine_query_names_its_field(world: World, query: str) -> None:
    """422."""
    async with world.client(world.add_key("acme", "operator")) as client:
        answer = await client.get(f"/v1/usage/quarantine?{query}")

    assert (answer.status_code, answer.json()["field"]) == (422, query.partition("=")[0])
