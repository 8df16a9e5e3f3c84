"""Budgets as they are set: what is refused, and what a budget's home has noted."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.budget_api import BudgetRequest
from pilotlight_core.model.api.tenancy_api import FunctionShareRequest
from pilotlight_core.model.errors import BadInput, Conflict, Forbidden, UnknownFunction
from pilotlight_core.model.money.budgets import (
    MOST_BUDGETS,
    MOST_ZONES,
    BudgetPeriod,
    BudgetsRecord,
    HomeTranches,
    Tranche,
    span_of,
)
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.budgets.budget_settings import budget_info, instant_text, remove_budget, set_budget
from pilotlight_gateway.tenancy.function_shares import share_app
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.budgets.stored_tranches import NOON, budget


async def test_setting_a_budget_again_replaces_it() -> None:
    """In its place; the last one that is removed takes the record with it."""
    registry = MemoryRegistry()
    for usd in ("1", "2.5"):
        await set_budget(registry, "acme", BudgetRequest(usd=usd), by_operator=False)
        await set_budget(registry, "acme", BudgetRequest(usd=usd, period=BudgetPeriod.DAY), by_operator=False)
    record = registry.budgets("acme")
    assert record is not None
    assert [(one.id, one.amount) for one in record.budgets] == [("month", 2_500_000_000), ("day", 2_500_000_000)]
    for name in ("day", "month"):
        await remove_budget(registry, "acme", name, by_operator=False)
    assert registry.budgets("acme") is None


@pytest.mark.parametrize("by_operator", [False, True])
async def test_there_may_be_so_many(by_operator: bool) -> None:
    """Of the tenant and of operators each, so that neither takes the other's room."""
    many = tuple(budget(1, function=f"acme:zoo.f{number}", by_operator=by_operator) for number in range(MOST_BUDGETS))
    registry = MemoryRegistry(budget_records={"acme": BudgetsRecord(tenant="acme", budgets=many)})
    day, month = BudgetRequest(usd="1", period=BudgetPeriod.DAY), BudgetRequest(usd="1")
    with pytest.raises(Conflict):
        await set_budget(registry, "acme", day, by_operator=by_operator)
    await set_budget(registry, "acme", month, by_operator=not by_operator)
    await remove_budget(registry, "acme", many[0].id, by_operator=by_operator)
    await set_budget(registry, "acme", day, by_operator=by_operator)


async def test_what_an_operator_has_set_is_the_operators() -> None:
    """A tenant does not replace it."""
    registry = MemoryRegistry()
    await set_budget(registry, "acme", BudgetRequest(usd="1"), by_operator=True)
    with pytest.raises(Forbidden):
        await set_budget(registry, "acme", BudgetRequest(usd="2"), by_operator=False)


async def test_periods_begin_in_few_zones() -> None:
    """The ledger is summed from each beginning."""
    registry = MemoryRegistry()
    zones = ["UTC", "Europe/Berlin", "Asia/Tokyo", "Asia/Kolkata", "America/New_York", "America/Lima", "Asia/Dubai",
             "Europe/Rome", "Europe/Paris"]  # fmt: skip
    many = tuple(budget(1, function=f"acme:zoo.of_{number}", tz=zone) for number, zone in enumerate(zones[:-1]))
    assert len(many) == MOST_ZONES
    registry.budget_records["acme"] = BudgetsRecord(tenant="acme", budgets=many)
    await set_budget(registry, "acme", BudgetRequest(usd="1", tz=zones[0]), by_operator=False)
    with pytest.raises(Conflict, match="time zones"):
        await set_budget(registry, "acme", BudgetRequest(usd="1", tz=zones[-1]), by_operator=False)


async def test_a_tenant_learns_nothing_of_functions_that_are_not_its_own() -> None:
    """What is not shared with it is not there, whether it is or not; what is shared may have a budget."""
    registry = MemoryRegistry()
    registry.apps["zoo", "secret"] = AppRecord(
        tenant="zoo", app="secret", revision=1, functions={"hello": "ver_1"}, versions={"hello": ("ver_1",)}
    )  # fmt: skip

    async def said(function: str) -> str:
        with pytest.raises(UnknownFunction) as caught:
            await set_budget(registry, "acme", BudgetRequest(usd="1", function=function), by_operator=False)
        assert "suggestion" not in caught.value.more
        return caught.value.detail.replace(function, "it")

    assert await said("zoo:secret.hello") == await said("zoo:secret.helo") == await said("zoo:other.hello")
    await share_app(registry, "zoo", "secret", "acme", FunctionShareRequest(functions=()))
    await set_budget(registry, "acme", BudgetRequest(usd="1", function="zoo:secret.hello"), by_operator=False)
    await said("zoo:secret.helo")


async def test_a_function_is_named_as_everywhere() -> None:
    """A version of it has no budget."""
    with pytest.raises(BadInput) as caught:
        await set_budget(MemoryRegistry(), "acme", BudgetRequest(usd="1", function="zoo.chat@v3"), by_operator=True)
    assert caught.value.more["field"] == "function"


def test_what_is_noted_of_another_period_is_not_told() -> None:
    """A month begins with nothing spent."""
    begins = span_of(BudgetPeriod.MONTH, "UTC", int(NOON)).begins
    for noted_of, spent in ((begins, "0.000000004"), (begins - 86_400, "0")):
        noted = HomeTranches(tenant="acme", tranches={"month": Tranche(begins=noted_of, spent=4)})
        assert budget_info(budget(4), noted, NOON).spent_usd == spent
        assert budget_info(budget(4), noted, NOON).is_exhausted is (spent != "0")
    assert instant_text(begins) == "2026-09-01T00:00:00Z"
