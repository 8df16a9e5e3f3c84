"""Credits over HTTP: operators grant, tenants look."""

from __future__ import annotations

from datetime import datetime

from pilotlight_core.model.subjects import USAGE_STREAM
from tests.gateway.ledger.metering import SECOND, delivered, event
from tests.gateway.world import World

PATH = "/v1/tenants/acme/credits"


async def test_credit_is_granted_spent_and_ended(world: World) -> None:
    """By what the ledger has."""
    async with world.client(world.operator) as client:
        given = (await client.post(PATH, json={"usd": "1", "note": "hello"})).json()
        (grant,) = given["grants"]
        day = f"{grant['begins']}T00:00:00+00:00"
        at = datetime.fromisoformat(day).timestamp() + 60.0
        world.ledger.fold(USAGE_STREAM, 1, delivered([event(1, 0, 50 * SECOND, ended_at=at)], at=at))
        spent = (await client.get(PATH)).json()
        ended = (await client.delete(f"{PATH}/{grant['id']}")).json()
        gone = await client.delete(f"{PATH}/grant_x")
    assert (given["balance_usd"], grant["left_usd"], grant["note"]) == ("1", "1", "hello")
    assert spent["balance_usd"] == "0.999345"
    assert [line["change"] for line in spent["history"]] == ["granted", "spent"]
    assert ended["grants"][0]["ends"] == grant["begins"]
    assert (ended["grants"][0]["left_usd"], ended["balance_usd"]) == ("0", "-0.000655")
    assert gone.status_code == 404


async def test_a_prepaid_budget_is_the_credit(world: World) -> None:
    """From the moment it is set, and with each grant that is given or ended; only operators set it."""
    budgets = "/v1/tenants/acme/budgets"
    async with world.client(world.operator) as client:
        none = (await client.put(budgets, json={"prepaid": True})).json()
        (grant,) = (await client.post(PATH, json={"usd": "1.5"})).json()["grants"]
        given = (await client.get(budgets)).json()["budgets"]
        await client.delete(f"{PATH}/{grant['id']}")
        ended = (await client.get(budgets)).json()["budgets"]
    async with world.client() as client:
        refused = await client.put(budgets, json={"prepaid": True})

    assert (none["id"], none["prepaid"], none["period"], none["is_exhausted"]) == ("prepaid", True, "lifetime", True)
    assert [(one["usd"], one["is_exhausted"]) for one in (*given, *ended)] == [("1.5", False), ("0", True)]
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


async def test_a_tenant_looks_and_grants_nothing(world: World) -> None:
    """Not even to itself."""
    async with world.client() as client:
        refused = await client.post(PATH, json={"usd": "1"})
        seen = (await client.get(PATH)).json()
    assert refused.status_code == 403
    assert (seen["balance_usd"], seen["grants"], seen["history"]) == ("0", [], [])
