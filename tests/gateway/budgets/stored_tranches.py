"""The durable records of budgets in memory, with the conflicts and losses that the real bucket has."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.model.money.budgets import (
    NEVER_ENDS,
    BilledBudgets,
    BilledSpending,
    Budget,
    BudgetMode,
    BudgetPeriod,
    BudgetsRecord,
    HomeTranches,
    budget_id,
)
from pilotlight_gateway.budgets.budget_home import BudgetHome

NOON = 1_790_000_000.0
FUNCTION = "acme:zoo.chat"


def budget(amount: int, **more: object) -> Budget:
    """Of a tenant's month, unless said otherwise."""
    given = {"period": BudgetPeriod.MONTH, "function": "", "key": "", "mode": BudgetMode.HARD} | more
    name = budget_id(given["period"], given["function"], given["key"])  # type: ignore[arg-type]
    return Budget(id=name, amount=amount, **given)  # type: ignore[arg-type]


class Settings:
    """The budgets of tenants, as they are set."""

    def __init__(self, *budgets: Budget, tenant: str = "acme") -> None:
        self.records = {tenant: BudgetsRecord(tenant=tenant, budgets=budgets)} if budgets else {}

    def __call__(self, tenant: str) -> BudgetsRecord | None:
        return self.records.get(tenant)

    def set(self, *budgets: Budget, tenant: str = "acme") -> None:
        """Replace a tenant's."""
        self.records[tenant] = BudgetsRecord(tenant=tenant, budgets=budgets)


class StoredTranches:
    """One record for each tenant; writes at a wrong revision are refused."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[HomeTranches, int]] = {}
        self.revision = 0
        self.loses: Callable[[], str] = lambda: ""
        """What happens to the next write: "" it is stored, "before" or "after" its answer is lost."""
        self.billed: dict[str, int] | None = {}
        """What the ledger has of calls, by budget: told to purses that wait for it. None: nothing is told."""

    def keep(self, home: BudgetHome, tenant: str = "acme") -> None:
        """As the keeper does, once; and as the duty does where a purse waits for it."""
        if home.needs_reading(tenant):
            record, revision = self.records.get(tenant, (None, 0))
            home.loaded(tenant, record, revision)
        wanted = home.unwritten(tenant)
        if wanted is not None:
            self._write(home, *wanted)
        if self.billed is not None:
            for name, purse in home.purses(tenant).items():
                if purse.is_waiting_for_ledger:
                    spending = BilledSpending(begins=purse.span.begins, calls=self.billed.get(name, 0))
                    home.on_billed(BilledBudgets(tenant=tenant, upto=NEVER_ENDS, budgets={name: spending}))

    def _write(self, home: BudgetHome, record: HomeTranches, revision: int) -> None:
        if revision != self.records.get(record.tenant, (None, 0))[1]:
            home.forget(record, is_refused=True)
            return
        lost = self.loses()
        if lost != "before":
            self.revision += 1
            self.records[record.tenant] = record, self.revision
        if lost:
            home.forget(record)
        else:
            home.written(record, self.revision)

    def serve(self, home: BudgetHome, tenant: str = "acme") -> None:
        """Keep a tenant whenever it is urgent."""
        home.wake = lambda: self.keep(home, tenant)

    def taken(self, tenant: str = "acme", name: str = "month") -> int:
        """What is taken of a budget."""
        return self.records[tenant][0].tranches[name].taken
