"""The durable records over a real bus: read before anything is granted, written by compare-and-set."""

from __future__ import annotations

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.model.money.budgets import BilledBudgets, BilledSpending, BudgetsRecord
from pilotlight_core.model.subjects import BUDGET_BUCKET
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.purse import PurseStanding, PurseVerdict
from pilotlight_gateway.budgets.tranche_keeper import TrancheKeeper
from tests.gateway.budgets.stored_tranches import NOON, Settings, budget
from tests.gateway.budgets.test_budget_home import Wall, asked
from tests.waiting import until, until_found


async def grant(home: BudgetHome, number: int, worst: int) -> object:
    """Ask until it is decided."""
    found: list[object] = []

    def is_decided() -> bool:
        found.append(home.ask("acme", ("g1", number), asked(worst)))
        return found[-1] is not PurseVerdict.WAITS

    await until(is_decided)
    return found[-1]


async def tell(bus: Bus, home: BudgetHome, other: int = 0) -> None:
    """The duty tells what the ledger has."""
    await until(lambda: bool(home.purses("acme")))
    spending = BilledSpending(begins=home.purses("acme")["month"].span.begins, other=other)
    billed = BilledBudgets(tenant="acme", upto=NOON, budgets={"month": spending})
    await bus.kv(BUDGET_BUCKET).put("ledger.acme", msgspec.msgpack.encode(billed))


async def test_a_home_reads_takes_and_hears(bus: Bus) -> None:
    """What it has taken is read by the next one, and what the ledger tells reaches it."""
    settings, wall = Settings(budget(1_000)), Wall()
    home = BudgetHome(settings, wall)
    keeper = TrancheKeeper(bus, home, lambda: ["acme"])
    assert await keeper.read("acme") is None
    async with keeper.running():
        await tell(bus, home)
        assert [await grant(home, number, 300) for number in range(3)] == [PurseVerdict.FITS] * 3
        assert isinstance(await grant(home, 3, 300), PurseStanding)
        await tell(bus, home, other=90)
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


async def test_the_trouble_of_one_tenant_is_not_that_of_the_others(bus: Bus) -> None:
    """Its settings cannot be read, and theirs are kept on."""

    settings = Settings(budget(1_000))

    def read(tenant: str) -> BudgetsRecord | None:
        if tenant == "evil":
            raise RuntimeError("unreadable")
        return settings(tenant)

    await clear(bus)
    home = BudgetHome(read, Wall())
    async with TrancheKeeper(bus, home, lambda: ["evil", "acme"]).running():
        await tell(bus, home)
        assert await grant(home, 1, 300) is PurseVerdict.FITS


async def test_a_record_whose_budgets_are_removed_says_so_at_the_next_home(bus: Bus) -> None:
    """Though nobody follows its tenant: the budget was removed as the home died."""
    await clear(bus)
    settings, wall = Settings(budget(0)), Wall()
    keeper = TrancheKeeper(bus, BudgetHome(settings, wall), lambda: ["acme"])
    async with keeper.running():
        await until_kept(keeper, {"month"})
    settings.records.clear()
    keeper = TrancheKeeper(bus, BudgetHome(settings, wall), list)
    async with keeper.running():
        await until_kept(keeper, set())


async def test_who_is_no_home_any_more_writes_nothing(bus: Bus) -> None:
    """Though it has what it would write, and its record was read while it was."""
    await clear(bus)
    mine = iter([True, False, True, True])  # not any more once the record is read
    home = BudgetHome(Settings(budget(1_000)), Wall())
    keeper = TrancheKeeper(bus, home, lambda: ["acme"], lambda _: next(mine))
    home.follow("acme")
    await keeper.keep("acme")
    assert await keeper.read("acme") is None
    await keeper.keep("acme")
    assert await keeper.read("acme") is not None


async def clear(bus: Bus) -> None:
    """No record of the tenant is there."""
    for kind in ("home", "ledger"):
        await bus.kv(BUDGET_BUCKET).delete(f"{kind}.acme")


async def until_kept(keeper: TrancheKeeper, names: set[str]) -> None:
    """The record has tranches of these budgets."""

    async def is_kept() -> bool | None:
        kept = await keeper.read("acme")
        return True if kept is not None and set(kept.tranches) == names else None

    await until_found(is_kept)
