"""The port of limits, and a home in memory for tests. The real one is `limiter.HomeLimiter`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pilotlight_core.model.limits import UNLIMITED
from pilotlight_core.model.messages.limiting import LimitAsk, LimitAskKind, LimitEnd
from pilotlight_gateway.limits.limit_admission import Admission, admission_of
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

    async def admit(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission:
        """Ask for a call that is estimated to take `cost` GPU-milliseconds, under a policy with scopes.

        A job asks for its submission and for its start. If the call may begin, its owner calls `Admission.end` once.
        """
        ...


FREE = policy_of(UNLIMITED, "")


class MemoryLimiter:
    """One home for everything, without a bus; tests script the policies, the clock and refusals."""

    def __init__(self, policies: PolicyOf = lambda *_: FREE, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.policy = policies
        self.home = LimitHome(policies)
        self.home.begin(0, 1, -1e6, ())
        self.refusal: Callable[[LimitPolicy], Admission] | None = None
        self._clock = clock
        self._number = 0

    def epoch(self, tenant: str) -> int:  # noqa: ARG002 - one home for everything
        return self.home.epoch(0)

    async def admit(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission:
        if self.refusal is not None:
            return self.refusal(policy)
        self._number += 1
        answer = self.home.ask(0, "", LimitAsk(self._number, tenant, function, cost, part), self._clock())
        return admission_of(tenant, function, policy, answer, self._ended)

    def _ended(self, admission: Admission, cost: float | None) -> None:
        answer = admission.answer
        if answer is not None:
            correction = cost - answer.charged if cost is not None and admission.policy.most_cost else 0.0
            end = LimitEnd(answer.number, admission.tenant, admission.function, correction)
            self.home.ended(0, "", end, self._clock())
