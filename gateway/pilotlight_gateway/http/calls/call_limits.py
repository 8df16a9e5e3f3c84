"""Counts calls under the limits of their tenants."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.budgets.call_money import CallMoney
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.prepared_call import PreparedCall, limit_tokens
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_admission import Admission, end_unused, settle_admission
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.limits.token_asks import token_ask
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.tenancy.auth import Principal

CALL_BODY = BodyLimits(size=10 * 10**6 + 64 * 1024)
"""10 MB of payload and its framing."""


def function_of(version: VersionRecord) -> str:
    """`tenant:app.function` of the owner."""
    return f"{version.tenant}:{version.app}.{version.function}"


class AdmittedRequest(Protocol):
    """A request as its tenant's limits see it."""

    admission: Admission | None
    """Of a call that counts under its tenant's limits."""
    version: str
    """The version id of that call."""
    usage: CallUsage | None
    """Counts its cost; None while it cannot have run."""
    call_id: str
    arrived_at: float
    """Monotonic seconds."""
    called: VersionRecord | None
    """The version that it calls, once that is known."""
    call: PreparedCall | None
    """What it has come to, once it was read."""

    @property
    def principal(self) -> Principal: ...


class CallLimits:
    """Applies the limits of tenants to requests."""

    def __init__(self, limiter: Limiter, costs: Estimates, recorder: CallRecorder, prices: CallPrices) -> None:
        self._limiter = limiter
        self._costs = costs
        self.prices = prices
        self._recorder = recorder

    async def admit(
        self, request: AdmittedRequest, version: VersionRecord, body: BodyLimits, part: LimitAskKind
    ) -> BodyLimits:
        """Count a call under its tenant's limits. Returns the limits of its body. Then call `release` in any case.

        Raises:
            TooMuch: `rate_limited`, naming the limit.
            Unavailable: the home of the tenant's limits does not answer.
        """
        tenant, request.called = request.principal.tenant, version
        function = function_of(version)
        policy = self._limiter.policy(tenant, function)
        if policy.counts_requests if part is LimitAskKind.SUBMISSION else policy.scopes:
            if request.admission is None:
                cost = self._costs.of(version.id, function) if policy.most_cost else 0.0
                request.admission = await self._limiter.admit(tenant, function, policy, cost, part)
            self._check(request, version.id, request.admission)
        elif policy.budgets and part is not LimitAskKind.SUBMISSION:
            request.version = version.id
            request.admission = request.admission or Admission(tenant, function, policy)
        return body if policy.payload is None else at_most(body, policy.payload)

    def policy(self, tenant: str, version: VersionRecord) -> LimitPolicy:
        """What a call of a tenant to a version must pass."""
        return self._limiter.policy(tenant, function_of(version))

    def admit_now(self, request: AdmittedRequest, version: VersionRecord, function: str, policy: LimitPolicy) -> bool:
        """Count a call as `admit` does; False: its home has to be asked, and nothing is counted.

        Raises:
            TooMuch: as `admit`.
        """
        tenant, request.called = request.principal.tenant, version
        if not policy.scopes:
            if policy.budgets:
                request.version, request.admission = version.id, Admission(tenant, function, policy)
            return True
        cost = self._costs.of(version.id, function) if policy.most_cost else 0.0
        admission = self._limiter.admit_now(tenant, function, policy, cost)
        if admission is None:
            return False
        request.admission = admission
        self._check(request, version.id, admission)
        return True

    def _check(self, request: AdmittedRequest, version: str, admission: Admission) -> None:
        request.version = version
        if admission.error is not None:
            self._recorder.request_failed(admission.error, request)
            raise admission.error

    async def count_tokens(self, request: AdmittedRequest, call: PreparedCall) -> None:
        """Hold a call that has been read to what one may have, and count the tokens that it asks for.

        Raises:
            BadInput: `too_many_tokens`: one call may not have so many.
            TooMuch, Unavailable: as `admit` does.
        """
        policy = self._limiter.policy(call.tenant, call.function)
        if policy.bounds_tokens:
            limit_tokens(call, policy)
        first = request.admission
        if first is None or not first.policy.most_tokens:
            return
        tokens = self._costs.tokens_asked(request.version, first.function, token_ask(call.method, call.input))
        first.tokens = second = await self._limiter.admit(
            first.tenant, first.function, first.policy, tokens, LimitAskKind.TOKENS
        )
        if second.error is not None:
            raise second.error

    def limit_tokens(self, call: PreparedCall) -> None:
        """Hold a job that has been read to what one call may have; its tokens count when it starts.

        Raises:
            BadInput: as `count_tokens`.
        """
        limit_tokens(call, self._limiter.policy(call.tenant, call.function))

    async def reserve(self, first: Admission, call: PreparedCall, seconds: float | None = None) -> None:
        """Reserve the money of a call that was let in and has been read: of so many seconds, or of all that it has.

        Raises:
            BudgetExhausted, Unavailable.
        """
        # A further step of a stream has its time alone: what it counts is billed once.
        money = self._money(call, seconds, with_units=not first.money)
        await self._limiter.reserve(money, first.policy)
        _keep(first, money)

    def longest_s(self, call: PreparedCall) -> float:
        """The seconds that a call can run, with all its starts."""
        return self.prices.longest_s(call.version, call.deadline_at - call.arrived_at)

    def reserve_now(self, first: Admission, call: PreparedCall) -> bool:
        """Reserve what a call can cost that has no money yet; False: its home has to be asked, and nothing is reserved.

        Raises:
            BudgetExhausted.
        """
        payer = call.tenant, call.function, call.key
        money = self.prices.money_of_call(call.version, payer, call.deadline_at - call.arrived_at)
        if not self._limiter.reserve_now(money, first.policy):
            return False
        if money.error is not None:
            raise money.error
        first.money = (money,)
        return True

    def _money(self, call: PreparedCall, seconds: float | None, *, with_units: bool) -> CallMoney:
        prices, version = self.prices, call.version
        within_s = call.deadline_at - call.arrived_at  # it may wait before it runs
        most_s = prices.longest_s(version, within_s)
        if seconds is not None and seconds < most_s:
            most_s = seconds
        payer = call.tenant, call.function, call.key
        return prices.money_of(version, payer, most_s, within_s=within_s, with_units=with_units)

    def release(self, request: AdmittedRequest) -> None:
        """Once the call of a request runs no more, give its permit back and count its cost."""
        if (admission := request.admission) is None:
            return
        if request.usage is None:
            end_unused(admission)  # it cannot have run
        else:
            settle_admission(request.usage, admission, self._costs, request.version, self.prices)


def _keep(first: Admission, money: CallMoney) -> None:
    if money.error is not None:
        raise money.error
    first.money = (*first.money, money)


def usage_of_call(request: AdmittedRequest) -> CallUsage | None:
    """A counter for a call's cost; None if its tenant has no limits."""
    if request.admission is not None:
        request.usage = CallUsage()
    return request.usage


@lru_cache(1024)
def at_most(body: BodyLimits, size: int) -> BodyLimits:
    """The limits of a body that may have at most `size` bytes."""
    return BodyLimits(size=min(body.size, size), grace=body.grace, rate=body.rate)
