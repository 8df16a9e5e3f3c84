"""A job that waits for money says for which budget."""

from __future__ import annotations

from pilotlight_core.model.money.budgets import BudgetMode, BudgetPeriod, Tranche, span_of
from pilotlight_gateway.budgets.call_money import CallMoney
from pilotlight_gateway.http.endpoints.billing.job_money import lack_of
from tests.gateway.budgets.stored_tranches import FUNCTION, NOON, budget
from tests.gateway.world import World, function

ASK = CallMoney("acme", FUNCTION, "k1", 30, 10, 0.0)


def test_what_a_budget_lacks_is_a_sentence() -> None:
    """Of the present period; a soft one needs what nearly all calls take."""
    begins = span_of(BudgetPeriod.MONTH, "UTC", int(NOON)).begins
    noted = Tranche(begins=begins, spent=75)
    assert lack_of(budget(100), noted, ASK, NOON) == (
        "the budget month has 0.000000025 USD left, and a run may cost 0.00000003"
        "; it begins anew at 2026-10-01T00:00:00Z"
    )
    assert lack_of(budget(100, mode=BudgetMode.SOFT), noted, ASK, NOON) is None
    assert lack_of(budget(100), Tranche(begins=begins - 86_400, spent=75), ASK, NOON) is None
    assert lack_of(budget(20, period=BudgetPeriod.LIFETIME), None, ASK, NOON) == (
        "the budget lifetime has 0.00000002 USD left, and a run may cost 0.00000003"
    )


def test_what_is_held_for_calls_that_run_is_not_there() -> None:
    """Of what is left, so much at most."""
    begins = span_of(BudgetPeriod.MONTH, "UTC", int(NOON)).begins
    held = Tranche(begins=begins, taken=90, noted=10, spent=15)
    assert lack_of(budget(100), held, ASK, NOON) == (
        "the budget month has 0.000000085 USD left, up to 0.00000008 of it for calls that run, and a run may cost "
        "0.00000003; it begins anew at 2026-10-01T00:00:00Z"
    )
    assert lack_of(budget(125), held, ASK, NOON) is None


async def test_a_job_tells_what_it_waits_for(world: World) -> None:
    """And nothing once there is money."""
    world.deploy(function())
    async with world.client() as client:
        await client.put("/v1/tenants/acme/budgets", json={"usd": "0.000001"})
        answer = await client.post(
            "/v1/functions/shop.hello/calls", json={"input": {"name": "Ada"}}, headers={"Prefer": "respond-async"}
        )
        job = answer.json()["id"]
        waits = (await client.get(f"/v1/calls/{job}")).json()
        await client.put("/v1/tenants/acme/budgets", json={"usd": "100"})
        goes = (await client.get(f"/v1/calls/{job}")).json()
    assert answer.status_code == 202
    assert waits["waits_for"].startswith("the budget month has 0.000001 USD left, and a run may cost ")
    assert goes["waits_for"] is None
