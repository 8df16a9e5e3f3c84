"""Invoices over HTTP."""

from __future__ import annotations

from pilotlight_core.model.units import cost_of, money
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered, event
from tests.gateway.world import World

HOUR = 3_600 * SECOND


async def test_a_months_invoice_is_final_when_its_days_are_closed(world: World) -> None:
    """And says what is to be paid."""
    work = event(1, 0, 10 * HOUR, price="l4", ended_at=MIDNIGHT + 43_200)
    world.ledger.fold("USAGE", 1, delivered([work]))
    world.ledger.close_days("2026-10-01", 0.0)
    async with world.client() as client:
        (head,) = (await client.get("/v1/billing/invoices")).json()["invoices"]
        found = (await client.get("/v1/billing/invoices/2026-09")).json()
        empty = (await client.get("/v1/billing/invoices/2025-01")).json()

    cost = cost_of(10 * HOUR, 1_000_000, world.ledger.book.rate("l4"))
    assert (found["state"], found["total"], found["amount"]) == ("final", money(cost), "7.99")
    assert head == {"number": "acme-2026-09", "month": "2026-09", "state": "final", "amount": "7.99"}
    assert (empty["amount"], empty["lines"]) == ("0.00", [])


async def test_an_invoice_is_its_tenants_and_the_operators_to_see(world: World) -> None:
    """And of a month."""
    world.ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, "ok"))]))
    async with world.client(world.add_key("rival", "read")) as rival, world.client(world.operator) as operator:
        own = (await rival.get("/v1/billing/invoices/2026-09")).json()
        theirs = await rival.get("/v1/billing/invoices/2026-09?tenant=acme")
        seen = (await operator.get("/v1/billing/invoices/2026-09?tenant=acme")).json()
        wrong = await operator.get("/v1/billing/invoices/2026-9")

    assert (own["tenant"], own["calls"]) == ("rival", 0)
    assert theirs.status_code == 403
    assert (seen["tenant"], seen["calls"]) == ("acme", 1)
    assert (wrong.status_code, wrong.json()["field"]) == (422, "month")
