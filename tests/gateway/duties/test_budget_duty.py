"""Homes hear what the ledger has, and up to when."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.model.ids import token
from pilotlight_core.model.money.budgets import BilledBudgets, HomeTranches, Tranche
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.subjects import BUDGET_BUCKET, USAGE_STREAM
from pilotlight_gateway.duties.budget_duty import BudgetDuty
from pilotlight_gateway.ledger.ledger_store import Ledger
from tests.gateway.ledger.metering import SECOND, delivered, event
from tests.waiting import until_found


async def test_what_is_billed_is_told(bus: Bus, tmp_path: Path) -> None:
    """As far as the stream is folded; what changes is told again."""
    ledger, kv = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices()), bus.kv(BUDGET_BUCKET)
    began = time.time()
    hour = int(began) // 3_600 * 3_600
    tenant = f"t{token(8)}"
    home = HomeTranches(tenant=tenant, tranches={"day": Tranche(begins=hour)})
    await kv.put(f"home.{tenant}", msgspec.msgpack.encode(home))
    before = await bus.jetstream.last_sequence(USAGE_STREAM)  # of what other tests have left there
    ledger.fold(USAGE_STREAM, before, [])

    async def told(*, other: bool, since: float = 0.0) -> BilledBudgets | None:
        entry = await kv.get(f"ledger.{tenant}")
        found = msgspec.msgpack.decode(entry.value, type=BilledBudgets) if entry is not None else None
        if found is None or found.upto < since:
            return None
        return found if bool(found.budgets["day"].other) is other else None

    duty = bus.spawn(BudgetDuty(bus, ledger, holder="test").run())
    try:
        first = await until_found(lambda: told(other=False))
        assert first.upto >= began
        used = event(1, 0, SECOND // 1_000, tenant=tenant, ended_at=hour + 1.0)
        ledger.fold(USAGE_STREAM, before, delivered([used], at=hour + 2.0))
        second = await until_found(lambda: told(other=True))
        assert second.budgets["day"].begins == hour

        again = time.time()  # its home waits to be told, though nothing has changed
        await kv.put(f"home.{tenant}", msgspec.msgpack.encode(HomeTranches(tenant=tenant)))
        await kv.put(f"home.{tenant}", msgspec.msgpack.encode(home))
        await until_found(lambda: told(other=True, since=again))
    finally:
        await bus.end(duty)
        ledger.close()
