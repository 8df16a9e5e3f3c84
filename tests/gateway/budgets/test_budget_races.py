"""A hard budget for a hundred worst cases: 500 callers at four gateways, then a hundred thousand short calls, and its
home dies in the middle of both.

`benchmarks.budgets` does the same with real processes.
"""

from __future__ import annotations

import pytest

from pilotlight_core.model.limits import UNLIMITED
from pilotlight_core.model.messages.limiting import (
    UNKNOWN_COST,
    Holdings,
    LimitAsk,
    LimitAskKind,
    LimitEnd,
    LimitVerdict,
)
from pilotlight_core.model.money.budgets import BilledBudgets, BilledSpending
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.call_money import money_of
from pilotlight_gateway.budgets.purse import BILLED_AFTER_S, SETTLED_AFTER_S
from pilotlight_gateway.limits.limit_driver import held_permits
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_home import LimitHome
from tests.gateway.budgets.stored_tranches import FUNCTION, NOON, Settings, StoredTranches, budget

WORST = 1_000_000
FITS = 100
SHORT = WORST // 1_000
SHARD = shard_of("acme")
GATEWAYS = ("g1", "g2", "g3", "g4")


class Races:
    """Four gateways, and the home of a budget, which may die with the gateway that it is."""

    def __init__(self) -> None:
        self.settings, self.store = Settings(budget(FITS * WORST)), StoredTranches()
        self.at, self.number, self.spent = NOON, 0, 0
        self.running: dict[str, dict[int, LimitAsk]] = {name: {} for name in GATEWAYS}
        self.orphans: list[LimitAsk] = []
        """Calls whose gateway has died, and that run on."""
        self.epoch = 0
        self.begin()

    def begin(self) -> None:
        """A next home begins, and every gateway that lives tells what runs."""
        self.epoch += 1
        self.budgets = BudgetHome(self.settings, lambda: self.at)
        self.store.serve(self.budgets)
        policy = policy_of(UNLIMITED, FUNCTION, self.settings.records["acme"].budgets)
        self.home = LimitHome(lambda _, __: policy, self.budgets)
        self.home.begin(SHARD, self.epoch, self.at, GATEWAYS)
        for name, running in self.running.items():
            paid = {number: money_of(asked) for number, asked in running.items()}
            told = Holdings(
                gateway=name, shard=SHARD, epoch=self.epoch, upto=self.number, held=held_permits({}, paid)
            )  # fmt: skip
            self.home.on_holdings(told, self.at)

    def kill(self, gateway: str) -> None:
        """The home dies, and was this gateway."""
        self.orphans += self.running[gateway].values()
        self.running[gateway] = {}
        self.at += 3.5
        self.begin()

    def ask(self, gateway: str) -> bool:
        """Ask until it is decided."""
        self.number += 1
        asked = LimitAsk(self.number, "acme", FUNCTION, 0.0, LimitAskKind.MONEY, WORST, WORST, "k1")
        while (answer := self.home.ask(SHARD, gateway, asked, self.at)).verdict is LimitVerdict.SETTLING:
            pass
        if answer.verdict is LimitVerdict.GRANTED:
            self.running[gateway][self.number] = asked
        self.check()
        return answer.verdict is LimitVerdict.GRANTED

    def end(self, gateway: str, number: int, cost: int = SHORT, told: int | None = None) -> None:
        """A call has ended."""
        del self.running[gateway][number]
        self.spent += cost
        end = LimitEnd(number, "acme", FUNCTION, spent=cost if told is None else told)
        self.home.ended(SHARD, gateway, end, self.at)

    def settle(self) -> None:
        """A minute goes by: orphans have ended, and the ledger has what they cost."""
        self.spent += SHORT * len(self.orphans)
        self.orphans.clear()
        self.at += SETTLED_AFTER_S + 2 * BILLED_AFTER_S
        begins = self.budgets.purses("acme")["month"].span.begins
        billed = BilledSpending(begins=begins, calls=self.spent)
        self.budgets.on_billed(BilledBudgets(tenant="acme", upto=self.at, budgets={"month": billed}))

    @property
    def open(self) -> int:
        """Calls that run."""
        return sum(map(len, self.running.values())) + len(self.orphans)

    def check(self) -> None:
        """If all that runs took its worst case, the budget would hold."""
        assert self.spent + WORST * self.open <= FITS * WORST

    def spend(self, most: int | None = None) -> None:
        """Short calls one after the other, until one is refused."""
        done = 0
        while (most is None or done < most) and self.ask(gateway := GATEWAYS[self.number % 4]):
            self.end(gateway, self.number)
            self.at += 0.001
            done += 1
            if done % 1_000 == 0:
                self.store.keep(self.budgets)


@pytest.mark.parametrize("dies", [None, "g2"])
def test_as_many_run_at_once_as_fit_and_then_all_of_it_is_spent(dies: str | None) -> None:
    """Never more; after a death in between not less, once the ledger has told."""
    races = Races()
    for number in range(500):
        races.ask(GATEWAYS[number % 4])
        if number == 60 and dies is not None:
            races.kill(dies)
    assert races.open == FITS if dies is None else races.open <= FITS
    if dies is not None:
        races.settle()
        for number in range(500):
            races.ask(GATEWAYS[number % 4])
        assert races.open == (FITS * WORST - races.spent) // WORST == FITS - 1

    for name in GATEWAYS:
        for number in list(races.running[name]):
            races.end(name, number)
    races.spend(50_000)
    if dies is not None:
        races.kill(dies)
    races.spend()
    races.settle()
    races.spend()
    assert 0.99 * FITS * WORST <= races.spent <= FITS * WORST


def test_ends_that_nobody_knows_hold_nothing_back_for_ever() -> None:
    """What they cost is what the ledger has of them."""
    races = Races()
    for _ in range(30):
        assert races.ask("g1")
        races.end("g1", races.number, told=UNKNOWN_COST)
    assert races.budgets.purses("acme")["month"].used == 30 * WORST
    races.settle()
    assert races.budgets.purses("acme")["month"].used == races.spent
