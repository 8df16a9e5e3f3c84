"""Which functions have no money left, as homes note it."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.spent_budgets import SpentBudgets, spent_of
from pilotlight_core.bus import Bus
from pilotlight_core.model.money.budgets import HomeTranches, Tranche
from pilotlight_core.model.subjects import BUDGET_BUCKET
from tests.builders.specs import function_spec, version_record
from tests.waiting import until

CHAT = version_record(function_spec("chat"))


def noted(**tranches: Tranche) -> bytes:
    """A home's record of acme."""
    return msgspec.msgpack.encode(HomeTranches(tenant=CHAT.tenant, tranches=tranches))


def test_a_key_without_money_ends_nothing() -> None:
    """And what cannot be read says nothing."""
    key = Tranche(begins=0, key="k1", is_exhausted=True)
    function = Tranche(begins=0, function="acme:zoo.chat", is_exhausted=True)
    assert spent_of(noted(a=key, b=function, c=Tranche(begins=0))) == {"acme:zoo.chat": "b"}
    assert spent_of(b"\xff") == {}


async def test_the_controller_hears_of_money_that_is_gone_and_there_again(bus: Bus) -> None:
    """Of all functions of a tenant, or of one."""
    changed: list[str] = []
    kv, name = bus.kv(BUDGET_BUCKET), f"{CHAT.tenant}:{CHAT.app}.{CHAT.function}"
    async with SpentBudgets(bus, changed.append) as budgets:
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
