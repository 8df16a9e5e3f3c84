"""The durable records over a real bus: read before anything is granted, written by compare-and-set."""

from __future__ import annotations

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.model.money.budgets import BilledBudgets, BilledSpending
from pilotlight_core.model.subjects import BUDGET_BUCKET
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.purse import PurseStanding, PurseVerdict
from pilotlight_gateway.budgets.tranche_keeper import TrancheKeeper
from tests.gateway.budgets.stored_tranches import NOON, Settings, budget
from tests.gateway.budgets.test_budget_home import Wall, asked
from tests.waiting import until


async def grant(home: BudgetHome, number: int, worst: int) -> object:
    """Ask until it is decided."""
    found: list[object] = []

    def is_decided() -> bool:
        found.append(home.ask("acme", ("g1", number), asked(worst)))
        return found[-1] is not PurseVerdict.WAITS

    await until(is_decided)
    return found[-1]


async def test_a_home_reads_takes_and_hears(bus: Bus) -> None:
    """What it has taken is read by the next one, and what the ledger tells reaches it."""
    settings, wall = Settings(budget(1_000)), Wall()
    home = BudgetHome(settings, wall)
    keeper = TrancheKeeper(bus, home, lambda: ["acme"])
    assert await keeper.read("acme") is None
    async with keeper.running():
        assert [await grant(home, number, 300) for number in range(3)] == [PurseVerdict.FITS] * 3
        assert isinstance(await grant(home, 3, 300), PurseStanding)
        spending = BilledSpending(begins=home.purses("acme")["month"].span.begins, other=90)
        billed = BilledBudgets(tenant="acme", upto=NOON, budgets={"month": spending})
        await bus.kv(BUDGET_BUCKET).put("ledger.acme", msgspec.msgpack.encode(billed))
        await until(lambda: home.purses("acme")["month"].spent == 90)
        await keeper.keep("acme")
    noted = await keeper.read("acme")
    assert noted is not None
    assert noted.tranches["month"].spent == 90

    other = BudgetHome(settings, wall)
    async with TrancheKeeper(bus, other, lambda: ["acme"]).running():
        assert isinstance(await grant(other, 1, 300), PurseStanding)
        assert other.purses("acme")["month"].used == noted.tranches["month"].taken
        assert other.purses("acme")["month"].spent == 90
        home.ended("acme", ("g1", 1), 5)
        await keeper.keep("acme")  # paused for long: its write is refused
        assert home.needs_reading("acme")
