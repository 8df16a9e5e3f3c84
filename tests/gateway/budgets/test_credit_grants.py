"""Credits as they are granted, ended and shown."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.credit_api import CreditRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.money.credits import MOST_GRANTS, CreditGrant, CreditsRecord
from pilotlight_gateway.budgets.credit_grants import credit_list, day_at, end_credit, grant_credit
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.budgets.stored_tranches import NOON

TODAY = day_at(NOON)


async def test_a_grant_is_spent_and_ended() -> None:
    """What is left of it lapses on that day; its history stays."""
    registry = MemoryRegistry()
    first = await grant_credit(registry, "acme", CreditRequest(usd="10", note="to begin with"), NOON)
    await grant_credit(registry, "acme", CreditRequest(usd="5", priority=-1, ends="2100-01-01"), NOON)
    spent = [(TODAY, 7 * 10**9)]
    shown = credit_list(registry.credits("acme"), spent, NOON)
    assert (shown.balance_usd, [(one.left_usd, one.priority) for one in shown.grants]) == ("8", [("8", 0), ("0", -1)])
    assert [(line.change, line.usd, line.balance_usd) for line in shown.history] == [
        ("granted", "10", "10"), ("granted", "5", "15"), ("spent", "5", "10"), ("spent", "2", "8"),
    ]  # fmt: skip
    await end_credit(registry, "acme", first.id, NOON + 86_400)
    shown = credit_list(registry.credits("acme"), spent, NOON + 86_400)
    assert (shown.balance_usd, shown.history[-1].change) == ("0", "lapsed")


async def test_what_is_wrong_names_the_field() -> None:
    """And there may be so many."""
    registry = MemoryRegistry()
    for wrong, field in ((CreditRequest(usd="0"), "usd"), (CreditRequest(usd="1", ends=TODAY), "ends")):
        with pytest.raises(BadInput) as caught:
            await grant_credit(registry, "acme", wrong, NOON)
        assert caught.value.more["field"] == field
    with pytest.raises(NotFound):
        await end_credit(registry, "acme", "grant_x", NOON)
    many = tuple(CreditGrant(id=f"g{number}", amount=1, begins=TODAY) for number in range(MOST_GRANTS))
    registry.credit_records["acme"] = CreditsRecord(tenant="acme", grants=many)
    with pytest.raises(Conflict):
        await grant_credit(registry, "acme", CreditRequest(usd="1"), NOON)
    assert credit_list(None, (), NOON).balance_usd == "0"
