"""Why a job waits for money."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pilotlight_core.model.api.budget_api import usd_text
from pilotlight_core.model.money.budgets import NEVER_ENDS, Budget, BudgetMode, HomeTranches, Tranche, span_of
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_gateway.budgets.budget_home import falls_under
from pilotlight_gateway.budgets.budget_settings import instant_text
from pilotlight_gateway.budgets.call_money import CallMoney
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.tenancy.registry_port import RegistryPort

Tranches = Callable[[str], Awaitable[HomeTranches | None]]
"""What the home of a tenant's limits has noted of its budgets."""


@dataclass(frozen=True, kw_only=True)
class JobMoney:
    """Knows which budget a job that is queued waits for."""

    registry: RegistryPort
    prices: CallPrices
    tranches: Tranches

    async def lack(self, job: JobRecord, at: float) -> str | None:
        """The budget that has too little for the next run of a job at the unix second `at`; None: none has."""
        budgets, version = self.registry.budgets(job.tenant), self.registry.version(job.version)
        if budgets is None or version is None:
            return None
        money = self.prices.money_of(version, (job.tenant, job.function, job.key_id), job.timeout)
        mine = [one for one in budgets.budgets if falls_under(one, money.function, money.key)]
        noted = await self.tranches(job.tenant) if mine else None
        for one in mine:
            tranche = noted.tranches.get(one.id) if noted is not None else None
            if (lack := lack_of(one, tranche, money, at)) is not None:
                return lack
        return None


def lack_of(budget: Budget, noted: Tranche | None, money: CallMoney, at: float) -> str | None:
    """What a budget lacks for a run, in a sentence; None: nothing."""
    span = span_of(budget.period, budget.tz, int(at))
    if noted is None or noted.begins != span.begins:
        noted = Tranche(begins=span.begins)
    need = money.worst if budget.mode is BudgetMode.HARD else money.likely
    left, held = max(0, budget.amount - noted.spent), max(0, noted.taken - noted.noted)
    if need <= left - held:
        return None
    of_it = f", up to {usd_text(min(held, left))} of it for calls that run" if held and left else ""
    again = "" if span.ends == NEVER_ENDS else f"; it begins anew at {instant_text(span.ends)}"
    return f"the budget {budget.id} has {usd_text(left)} USD left{of_it}, and a run may cost {usd_text(need)}{again}"
