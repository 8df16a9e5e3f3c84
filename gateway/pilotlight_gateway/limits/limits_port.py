"""The port of limits, and a home in memory for tests. The real one is `limiter.HomeLimiter`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pilotlight_core.model.limits import UNLIMITED
from pilotlight_core.model.messages.limiting import LimitAsk, LimitAskKind, LimitEnd
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.call_money import CallMoney
from pilotlight_gateway.limits.limit_admission import (
    Admission,
    admission_of,
    refuse_money,
    unreachable,
)
from pilotlight_gateway.limits.limit_policy import LimitPolicy, PolicyOf, policy_of
from pilotlight_gateway.limits.limits_home import LimitHome


class Limiter(Protocol):
    @property
    def policy(self) -> PolicyOf:
        """What a call of a tenant to a function (`tenant:app.function`) must pass."""
        ...

    def epoch(self, tenant: str) -> int:
        """The epoch of the home of a tenant's limits; 0 while there is none."""
        ...

    def admit_now(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission | None:
        """As `admit`, if the home is here and decides at once; else None, and nothing is counted."""
        ...

    async def admit(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission:
        """Ask for a call that is estimated to take `cost` GPU-milliseconds, under a policy with scopes.

        A job asks for its submission and for its start; a call that has been read asks again for its tokens, which
        `cost` counts then. If the call may begin, its owner calls `Admission.end` of each once.
        """
        ...

    def reserve_now(self, money: CallMoney, policy: LimitPolicy) -> bool:
        """As `reserve`; False: its home has to be asked, and nothing is reserved."""
        ...

    async def reserve(self, money: CallMoney, policy: LimitPolicy) -> None:
        """Ask for the money of a call that has been let in and read. Without an error, its owner calls `end` once."""
        ...


TRIES = 3
"""Of the limiter in memory: a record is read, then a tranche is taken."""
FREE = policy_of(UNLIMITED, "")


class MemoryLimiter:
    """One home for everything, without a bus; tests script the policies, the clock and refusals."""

    def __init__(
        self,
        policies: PolicyOf = lambda *_: FREE,
        clock: Callable[[], float] = lambda: 0.0,
        budgets: BudgetHome | None = None,
    ) -> None:
        self.policy = policies
        self.home = LimitHome(policies, budgets)
        self.home.begin(0, 1, -1e6, ())
        self.refusal: Callable[[LimitPolicy], Admission] | None = None
        self._clock = clock
        self._number = 0

    def epoch(self, tenant: str) -> int:  # noqa: ARG002 - one home for everything
        return self.home.epoch(0)

    async def admit(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission:
        return self.admit_now(tenant, function, policy, cost, part)

    def admit_now(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission:
        if self.refusal is not None:
            return self.refusal(policy)
        asked = LimitAsk(self.new_number(), tenant, function, cost, part)
        return admission_of(asked, policy, self.home.ask(0, "", asked, self._clock()), self._ended)

    async def reserve(self, money: CallMoney, policy: LimitPolicy) -> None:
        for _ in range(TRIES):
            if self.reserve_now(money, policy):
                return
        money.error = unreachable(0.25)

    def new_number(self) -> int:
        self._number += 1
        return self._number

    def reserve_now(self, money: CallMoney, policy: LimitPolicy) -> bool:
        money.number = self.new_number()
        answer = self.home.reserve(0, "", money)
        if answer is None:
            money.admit(money.number, self._settle)
            return True
        return refuse_money(money, policy, answer)

    def _settle(self, money: CallMoney, spent: int | None) -> None:
        self.home.settle(0, "", money, spent)

    def _ended(self, admission: Admission, amount: float | None) -> None:
        if (end := admission.end_with(amount)) is not None:
            self._report(end)

    def _report(self, end: LimitEnd) -> None:
        self.home.ended(0, "", end, self._clock())
