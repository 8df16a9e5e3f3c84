"""The budgets of tenants who may spend what they have paid ahead and no more: their amount follows the credit.

It is written to the budget's record whenever a grant is given or ended, and looked at now and then by the tenant's home
of limits, since grants lapse with days and usage may come late. All else is as of any budget for a lifetime.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import date, timedelta

import msgspec
import structlog

from pilotlight_core.model.api.budget_api import nano_usd
from pilotlight_core.model.money.budgets import BudgetsRecord
from pilotlight_core.model.money.credits import prepaid_amount
from pilotlight_gateway.budgets.credit_grants import day_at
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.tenancy.registry_port import RegistryPort

EVERY_S = 30.0
FIRST_DAY = "2000-01-01"
"""No usage is older."""

log = structlog.get_logger(__name__)


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
        return prepaid_amount(
            record.grants if record is not None else (), await self.spent_by_day(tenant, FIRST_DAY), today
        )

    async def spent_by_day(self, tenant: str, first: str) -> list[tuple[str, int]]:
        """What each UTC day from `first` to today cost, in nano-dollars."""
        until = (date.fromisoformat(day_at(self._wall())) + timedelta(days=1)).isoformat()
        report = await asyncio.to_thread(self._ledger.usage, tenant, first, until, ("day",))
        return [(line.day, nano_usd(line.cost[: line.cost.index(".") + 10])) for line in report.lines]
