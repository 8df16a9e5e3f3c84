"""A prepaid budget is what credit allows, whatever is granted, lapses and comes late."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from pilotlight_core.model.api.budget_api import BudgetRequest
from pilotlight_core.model.api.credit_api import CreditRequest
from pilotlight_core.model.errors import BadInput, Forbidden
from pilotlight_core.model.subjects import USAGE_STREAM
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.budget_settings import set_budget
from pilotlight_gateway.budgets.credit_grants import end_credit, grant_credit
from pilotlight_gateway.budgets.prepaid_budgets import PrepaidBudgets
from pilotlight_gateway.budgets.purse import PurseStanding, PurseVerdict
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.ledger.usage_report import UsageReport
from tests.gateway.budgets.stored_tranches import StoredTranches
from tests.gateway.budgets.test_budget_home import ask, asked
from tests.gateway.ledger.metering import SECOND, delivered, event
from tests.gateway.world import World

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
DAY_S = 86_400.0
NANO = 10**9


class Ground:
    """A tenant who pays ahead, on a day that a test moves."""

    def __init__(self, world: World) -> None:
        self.world, self.at, self.number = world, NOON, 0
        self.registry = world.registry
        self.prepaid = PrepaidBudgets(world.registry, world.services.ledger, lambda: self.at)

    async def set(self) -> None:
        request = BudgetRequest(prepaid=True)
        amount = await self.prepaid.amount("acme")
        await set_budget(self.registry, "acme", request, by_operator=True, prepaid=amount)

    async def grant(self, usd: str, ends: str | None = None) -> str:
        given = await grant_credit(self.registry, "acme", CreditRequest(usd=usd, ends=ends), self.at)
        await self.prepaid.refresh("acme")
        return given.id

    def spend(self, seconds: int) -> int:
        """Returns what it cost, in nano-dollars."""
        self.number += 1
        interval = event(self.number, self.number * 10**15, self.number * 10**15 + seconds * SECOND, ended_at=self.at)
        self.world.ledger.fold(USAGE_STREAM, self.number, delivered([interval], at=self.at))
        return seconds * self.world.ledger.book.rate("cpu") // 3_600

    @property
    def amount(self) -> int:
        (budget,) = self.registry.budget_records["acme"].budgets
        return budget.amount


@pytest.fixture
def ground(world: World) -> Ground:
    return Ground(world)


async def test_it_follows_grants_and_what_lapses(ground: Ground) -> None:
    """What was spent before the first grant is beside it; late usage makes less lapse."""
    before = ground.spend(36_000)
    ground.at += DAY_S
    await ground.set()
    assert ground.amount == before
    first = await ground.grant("2", ends="2026-11-23")
    await ground.grant("3")
    assert ground.amount == before + 5 * NANO
    spent = ground.spend(36_000)
    ground.at += 2 * DAY_S
    await ground.prepaid.refresh("acme")
    assert ground.amount == before + 3 * NANO + spent  # of the first what was not spent has lapsed
    ground.at -= DAY_S
    late = ground.spend(3_600)
    ground.at += DAY_S
    await ground.prepaid.refresh("acme")
    assert ground.amount == before + 3 * NANO + spent + late
    await end_credit(ground.registry, "acme", first, ground.at)
    await ground.prepaid.refresh("acme")
    assert ground.amount == before + 3 * NANO + spent + late


async def test_a_look_reads_no_closed_day_twice(ground: Ground) -> None:
    """However long the tenant has been there; with whatever is granted, ends or comes late then."""
    asked: list[tuple[str, str]] = []
    usage = ground.world.services.ledger.usage

    class Counting(LedgerReader):
        def usage(self, tenant: str | None, first: str, until: str, groups: Sequence[str]) -> UsageReport:
            asked.append((first, until))
            return usage(tenant, first, until, groups)

    reader = Counting(str(ground.world.ledger._engine.url), ground.world.ledger.book)
    fresh = ground.prepaid
    ground.prepaid = PrepaidBudgets(ground.registry, reader, lambda: ground.at)
    await ground.set()
    assert asked == []  # nothing was spent at all
    for month in range(14):
        ground.spend(3_600 + month)
        await ground.grant("0.01", ends="2028-06-01" if month % 2 else None)
        ground.at += 31 * DAY_S
    ground.world.ledger.close_days("2027-11-01", ground.at)
    await ground.prepaid.refresh("acme")
    amount, first_look = ground.amount, list(asked)
    ground.spend(5)
    asked.clear()
    for _ in range(3):
        await ground.grant("1")
        assert asked == [("2027-11-01", "2028-01-29")]
        asked.clear()
        assert ground.amount == await fresh.amount("acme")
    assert max(first_look) > ("2027", "")
    assert ground.amount >= amount + 3 * NANO
    reader.close()


async def test_calls_are_refused_when_credit_is_used_up(ground: Ground) -> None:
    """And let in with the next grant."""
    await ground.set()
    await ground.grant("0.000001")
    home = BudgetHome(ground.registry.budgets, lambda: ground.at)
    StoredTranches().serve(home)
    assert ask(home, 1, asked(900)) is PurseVerdict.FITS
    refused = ask(home, 2, asked(900))
    assert isinstance(refused, PurseStanding)
    assert (refused.budget.id, refused.wait_s) == ("prepaid", None)
    await ground.grant("1")
    assert ask(home, 2, asked(900)) is PurseVerdict.FITS


async def test_who_has_no_such_budget_gets_none(ground: Ground) -> None:
    """By a grant, nor by a budget of the same time."""
    await ground.grant("1")
    assert ground.registry.budgets("acme") is None
    await set_budget(ground.registry, "acme", BudgetRequest(usd="5"), by_operator=True)
    await ground.grant("1")
    assert ground.amount == 5 * NANO


@pytest.mark.parametrize("more", [{"usd": "5"}, {"tz": "Europe/Berlin"}, {"key": "k"}])
async def test_it_has_thresholds_alone(ground: Ground, more: dict[str, str]) -> None:
    """And operators set it."""
    with pytest.raises(BadInput, match="prepaid"):
        await set_budget(ground.registry, "acme", BudgetRequest(prepaid=True, **more), by_operator=True)  # type: ignore[arg-type]
    with pytest.raises(Forbidden):
        await set_budget(ground.registry, "acme", BudgetRequest(prepaid=True), by_operator=False)
    with pytest.raises(BadInput, match="usd"):
        await set_budget(ground.registry, "acme", BudgetRequest(), by_operator=True)


async def test_a_ledger_that_does_not_answer_ends_no_keeper(world: World) -> None:
    """It looks again: calls need no ledger. A grant is refused meanwhile, and not given."""
    await Ground(world).set()
    prepaid = PrepaidBudgets(world.registry, world.services.ledger, lambda: NOON, every_s=0.01)
    with world.ledger._engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE usage_day RENAME TO gone")
    keeping = asyncio.create_task(prepaid.keep(lambda: ["acme"]))
    async with world.client(world.operator) as client:
        refused = await client.post("/v1/tenants/acme/credits", json={"usd": "100"})
    await asyncio.sleep(0.1)

    assert not keeping.done()
    assert (refused.status_code, world.registry.credits("acme")) == (503, None)
    keeping.cancel()
    with suppress(asyncio.CancelledError):
        await keeping


async def test_a_look_that_began_before_a_grant_ended_does_not_bring_it_back(world: World) -> None:
    """The one that ended it looks too."""
    ground = Ground(world)
    await ground.set()
    given = await ground.grant("100")
    asked, answer = threading.Event(), threading.Event()

    class Slow(LedgerReader):
        def first_day(self) -> str:
            asked.set()
            assert answer.wait(30.0)
            return super().first_day()

    reader = Slow(str(world.ledger._engine.url), world.ledger.book)
    late = PrepaidBudgets(world.registry, reader, lambda: NOON)
    looking = asyncio.create_task(late.refresh("acme"))
    await asyncio.to_thread(asked.wait, 30.0)
    await end_credit(world.registry, "acme", given, NOON)
    await ground.prepaid.refresh("acme")
    answer.set()
    await looking
    reader.close()

    record = world.registry.budgets("acme")
    assert record is not None
    assert [one.amount for one in record.budgets] == [0]


async def test_only_operators_make_the_ledger_be_read_for_it(world: World) -> None:
    """A tenant that asks is refused before."""
    with world.ledger._engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE usage_day RENAME TO gone")
    async with world.client() as client:
        refused = await client.put("/v1/tenants/acme/budgets", json={"prepaid": True})
    assert refused.status_code == 403
