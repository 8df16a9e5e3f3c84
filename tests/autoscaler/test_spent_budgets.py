"""Which functions have no money left, as homes note it."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.spent_budgets import SpentBudgets, spent_of
from pilotlight_core.bus import Bus
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.money.budgets import Budget, BudgetPeriod, BudgetsRecord, HomeTranches, Tranche
from pilotlight_core.model.subjects import BUDGET_BUCKET
from tests.builders.specs import function_spec, version_record
from tests.waiting import until

CHAT = version_record(function_spec("chat"))
BOTH = BudgetsRecord(
    tenant=CHAT.tenant,
    budgets=tuple(Budget(id=period, amount=0, period=BudgetPeriod(period)) for period in ("month", "day")),
)


def noted(**tranches: Tranche) -> bytes:
    """A home's record of acme."""
    return msgspec.msgpack.encode(HomeTranches(tenant=CHAT.tenant, tranches=tranches))


def test_a_key_without_money_ends_nothing() -> None:
    """And what cannot be read says nothing."""
    key = Tranche(begins=0, key="k1", is_exhausted=True)
    function = Tranche(begins=0, function="acme:zoo.chat", is_exhausted=True)
    assert spent_of(noted(a=key, b=function, c=Tranche(begins=0))) == {"b": "acme:zoo.chat"}
    assert spent_of(b"\xff") == {}


async def test_the_controller_hears_of_money_that_is_gone_and_there_again(bus: Bus) -> None:
    """Of all functions of a tenant, or of one."""
    changed: list[str] = []
    kv, name = bus.kv(BUDGET_BUCKET), f"{CHAT.tenant}:{CHAT.app}.{CHAT.function}"
    async with Registry(bus) as registry, SpentBudgets(bus, registry, changed.append) as budgets:
        await registry.change_budgets(CHAT.tenant, lambda _: BOTH)
        assert budgets.unfunded(CHAT) == ""
        await kv.put(f"home.{CHAT.tenant}", noted(month=Tranche(begins=0, is_exhausted=True)))
        await until(lambda: budgets.unfunded(CHAT))
        assert "the budget month of" in budgets.unfunded(CHAT)
        await kv.put(f"home.{CHAT.tenant}", noted(day=Tranche(begins=0, is_exhausted=True, function="acme:other.one")))
        await until(lambda: not budgets.unfunded(CHAT))
        await kv.put(f"home.{CHAT.tenant}", noted(day=Tranche(begins=0, is_exhausted=True, function=name)))
        await until(lambda: budgets.unfunded(CHAT))
        await kv.delete(f"home.{CHAT.tenant}")
        await until(lambda: not budgets.unfunded(CHAT))
    assert set(changed) == {CHAT.tenant}


async def test_a_budget_that_is_removed_counts_no_more_at_once(bus: Bus) -> None:
    """Though no home has noted it: its gateway has died, and the next one looks for such records now and then."""
    changed: list[str] = []
    async with Registry(bus) as registry, SpentBudgets(bus, registry, changed.append) as budgets:
        await registry.change_budgets(CHAT.tenant, lambda _: BOTH)
        await bus.kv(BUDGET_BUCKET).put(f"home.{CHAT.tenant}", noted(month=Tranche(begins=0, is_exhausted=True)))
        await until(lambda: budgets.unfunded(CHAT))
        changed.clear()
        await registry.change_budgets(CHAT.tenant, lambda _: None)
        await until(lambda: changed)
        assert budgets.unfunded(CHAT) == ""
