"""What a job's run takes of its tenant's limits, from its start to its end: cost, tokens and concurrency.

Rates of requests count its submission. A run beyond the limits is not refused but waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.budgets.call_money import CallMoney
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.prepared_call import PreparedCall, limit_tokens
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_admission import Admission, end_unused, settle_admission
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.limits.token_asks import TokenAsk, token_ask

SHORTEST_WAIT_S = 0.02
LONGEST_WAIT_S = 30.0
"""Then limits are asked again: they may have been raised."""


@dataclass(frozen=True, kw_only=True)
class JobPermits:
    limits: Limiter
    costs: Estimates
    prices: CallPrices | None = None
    """None: there are no budgets."""

    def of(self, job: JobRecord, version: VersionRecord) -> JobPermit:
        """The permit of the job's next run, of its version."""
        return JobPermit(self, job, version)


class JobPermit:
    """The permit of one run: taken before it is first sent, and settled at its end."""

    def __init__(self, permits: JobPermits, job: JobRecord, version: VersionRecord) -> None:
        self._limits = permits.limits
        self._costs = permits.costs
        self._prices = permits.prices
        self._tenant = job.tenant
        self._function = job.function
        self._version = version
        self._key = job.key_id
        self._seconds = job.timeout
        self._admission: Admission | None = None
        self._ask: TokenAsk | None = None
        """The tokens that it asks for; None: nobody knows."""

    def read(self, call: PreparedCall) -> None:
        """The run is this call: hold it to what one may have, and note the tokens that it asks for.

        Raises:
            BadInput: `too_many_tokens`.
        """
        policy = self._limits.policy(self._tenant, self._function)
        if policy.counts_tokens:
            limit_tokens(call, policy)
            self._ask = token_ask(call.method, call.input)

    async def take(self) -> float:
        """Take the permit; the seconds after which to try again, 0.0: it is taken."""
        policy = self._limits.policy(self._tenant, self._function)
        limited = policy.holds or policy.most_cost or policy.most_tokens
        if self._admission is not None or not (limited or policy.budgets):
            return 0.0
        admission = Admission(self._tenant, self._function, policy)
        if limited:
            cost = self._costs.of(self._version.id, self._function) if policy.most_cost else 0.0
            admission = await self._limits.admit(self._tenant, self._function, policy, cost, LimitAskKind.START)
        if admission.error is not None:
            return _seconds_until(admission.error)
        if (wait_s := await self._take_tokens(admission, policy)) or (wait_s := await self._reserve(admission, policy)):
            return wait_s
        self._admission = admission
        return 0.0

    async def _take_tokens(self, admission: Admission, policy: LimitPolicy) -> float:
        if policy.most_tokens:
            tokens = self._costs.tokens_asked(self._version.id, self._function, self._ask)
            admission.tokens = second = await self._limits.admit(
                self._tenant, self._function, policy, tokens, LimitAskKind.TOKENS
            )
            if second.error is not None:
                admission.end(0.0)
                return _seconds_until(second.error)
        return 0.0

    async def lack_s(self) -> float:
        """The seconds after which to look for the money of the run again; 0.0: it is there now, and nothing is taken.

        To be asked before the run is queued: a container would be started for it.
        """
        money = await self._ask_money(self._limits.policy(self._tenant, self._function))
        if money is None:
            return 0.0
        if money.error is not None:
            return _seconds_until(money.error)
        money.end(0)
        return 0.0

    async def _reserve(self, admission: Admission, policy: LimitPolicy) -> float:
        money = await self._ask_money(policy)
        if money is None:
            return 0.0
        if money.error is not None:
            end_unused(admission)
            return _seconds_until(money.error)
        admission.money = (*admission.money, money)
        return 0.0

    async def _ask_money(self, policy: LimitPolicy) -> CallMoney | None:
        """Ask for the money of the run, of its whole timeout; None: it needs none."""
        prices = self._prices
        if not policy.budgets or prices is None:
            return None
        money = prices.money_of(self._version, (self._tenant, self._function, self._key), self._seconds)
        await self._limits.reserve(money, policy)
        return money

    def settle(self, usage: CallUsage) -> None:
        """The run is over: give its place back and count its cost, once no start of it runs on."""
        admission, self._admission = self._admission, None
        if admission is not None:
            settle_admission(usage, admission, self._costs, self._version.id, self._prices)


def _seconds_until(refused: PilotlightError) -> float:
    if refused.retry_after is None:  # no time helps, such as with a budget for a lifetime
        return LONGEST_WAIT_S
    return min(max(refused.retry_after, SHORTEST_WAIT_S), LONGEST_WAIT_S)
