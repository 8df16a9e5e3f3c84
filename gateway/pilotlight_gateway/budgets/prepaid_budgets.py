"""The budgets of tenants who may spend what they have paid ahead and no more: their amount follows the credit.

It is written to the budget's record whenever a grant is given or ended, and looked at now and then by the tenant's home
of limits, since grants lapse with days and usage may come late. All else is as of any budget for a lifetime.

Days that are closed never change: what they cost is read once, and a look reads the others, some two months of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import NamedTuple

import msgspec
import structlog

from pilotlight_core.model.api.budget_api import nano_usd
from pilotlight_core.model.money.budgets import BudgetsRecord
from pilotlight_core.model.money.credits import CreditGrant, lumped, prepaid_amount
from pilotlight_gateway.budgets.credit_grants import day_at
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.tenancy.registry_port import RegistryPort

EVERY_S = 30.0
DAYS_AT_A_TIME = 366
KNOWN_AT_MOST = 1_000
"""Tenants whose closed days are kept."""

log = structlog.get_logger(__name__)


class ClosedSpending(NamedTuple):
    """What a tenant's closed days cost."""

    until: str = ""
    """All before it are closed."""
    days: tuple[tuple[str, int], ...] = ()
    grants: tuple[CreditGrant, ...] = ()
    lumps: tuple[tuple[str, int], ...] = ()
    """The same, as these grants need it."""


class PrepaidBudgets:
    """Keeps the amounts of prepaid budgets. `wall`: unix seconds."""

    def __init__(
        self,
        registry: RegistryPort,
        ledger: LedgerReader,
        wall: Callable[[], float] = time.time,
        every_s: float = EVERY_S,
    ) -> None:
        self._every_s = every_s
        self._registry = registry
        self._ledger = ledger
        self._wall = wall
        self._closed: dict[str, ClosedSpending] = {}

    async def keep(self, tenants: Callable[[], Iterable[str]]) -> None:
        """Refresh those of `tenants`, each half a minute, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            for tenant in list(tenants()):
                try:
                    await self.refresh(tenant)
                except Exception:  # calls need no ledger: whatever it says, the next look may find it well
                    log.exception("a prepaid budget does not follow its credit", tenant=tenant)

    async def refresh(self, tenant: str) -> None:
        """Let a tenant's prepaid budget, if it has one, be what its credit allows now.

        Raises:
            Unavailable: the ledger cannot be read. BusError.
        """
        record = self._registry.budgets(tenant)
        if record is None or not any(one.prepaid for one in record.budgets):
            return
        seen = self._registry.credits(tenant)
        amount = await self.amount(tenant)

        def changed(before: BudgetsRecord | None) -> BudgetsRecord | None:
            if before is None or self._registry.credits(tenant) is not seen:
                return before  # a grant came or ended meanwhile, and whoever gave it looks too
            budgets = tuple(
                msgspec.structs.replace(one, amount=amount) if one.prepaid else one for one in before.budgets
            )
            return msgspec.structs.replace(before, budgets=budgets)

        if any(one.prepaid and one.amount != amount for one in record.budgets):
            await self._registry.change_budgets(tenant, changed)

    async def amount(self, tenant: str) -> int:
        """What a tenant may have spent in all by now, in nano-dollars."""
        record, today = self._registry.credits(tenant), day_at(self._wall())
        grants = record.grants if record is not None else ()
        closed = await self._closed_spending(tenant, grants)
        return prepaid_amount(grants, [*closed.lumps, *await self.spent_by_day(tenant, closed.until)], today)

    async def spent_by_day(self, tenant: str, first: str) -> list[tuple[str, int]]:
        """What each UTC day from `first` to today cost, in nano-dollars."""
        return await self._spent(tenant, first, _day_after(day_at(self._wall())))

    async def _closed_spending(self, tenant: str, grants: tuple[CreditGrant, ...]) -> ClosedSpending:
        open_from = await asyncio.to_thread(self._ledger.open_from)
        known = self._closed.get(tenant, ClosedSpending())
        if known.until > open_from:  # the ledger is another one
            known = ClosedSpending()
        if known.until < open_from:
            days = (*known.days, *await self._spent(tenant, known.until, open_from))
            known = ClosedSpending(open_from, days, grants, tuple(lumped(grants, days)))
        elif known.grants != grants:
            known = known._replace(grants=grants, lumps=tuple(lumped(grants, known.days)))
        if len(self._closed) >= KNOWN_AT_MOST and tenant not in self._closed:
            self._closed.clear()
        self._closed[tenant] = known
        return known

    async def _spent(self, tenant: str, first: str, until: str) -> list[tuple[str, int]]:
        """The days from `first` to before `until`."""
        began = await asyncio.to_thread(self._ledger.first_day)
        found: list[tuple[str, int]] = []
        first = max(first, began or until)
        while first < until:  # so many days are asked for by name: others' rows are not read
            upto = min(until, _day_after(first, DAYS_AT_A_TIME))
            report = await asyncio.to_thread(self._ledger.usage, tenant, first, upto, ("day",))
            found += [(line.day, nano_usd(line.cost[: line.cost.index(".") + 10])) for line in report.lines]
            first = upto
        return found


def _day_after(day: str, days: int = 1) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
