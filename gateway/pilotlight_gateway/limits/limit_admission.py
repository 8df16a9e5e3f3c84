"""The result of asking for one call: whether it may begin, its error, and the headers of its answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from pilotlight_core.model.errors import PilotlightError, Unavailable
from pilotlight_core.model.messages.limiting import (
    LimitAnswer,
    LimitAsk,
    LimitAskKind,
    LimitEnd,
    LimitVerdict,
)
from pilotlight_gateway.budgets.call_money import CallMoney
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.limits.refusals import refused
from pilotlight_gateway.limits.token_headers import openai_headers

TOKENS: Final = LimitAskKind.TOKENS
REFUSED: Final = LimitVerdict.REFUSED

RateLimitHeaders = tuple[tuple[bytes, bytes], ...]


class Admission:
    """One call under a policy. If it is not refused, its owner calls `end` exactly once."""

    __slots__ = ("_end", "answer", "error", "function", "money", "part", "policy", "tenant", "tokens")

    def __init__(
        self,
        tenant: str,
        function: str,
        policy: LimitPolicy,
        *,
        answer: LimitAnswer | None = None,
        error: PilotlightError | None = None,
        end: Callable[[Admission, float | None], None] | None = None,
        part: LimitAskKind = LimitAskKind.CALL,
    ) -> None:
        self.tenant = tenant
        self.function = function
        self.policy = policy
        self.answer = answer
        self.error = error
        """Why the call may not begin; None: it may."""
        self.part = part
        self.tokens: Admission | None = None
        """The second ask, once the call has been read; None: tokens are not limited."""
        self.money: tuple[CallMoney, ...] = ()
        """The asks for money: of a stream one for each of its steps."""
        self._end = end

    def headers(self) -> RateLimitHeaders:
        """RateLimit-Policy, and RateLimit if known; once its tokens were counted those of OpenAI too."""
        if self.tokens is not None:
            return (*self.tokens.headers(), *self.openai_headers())  # the later word
        policy = self.policy.header_line
        if not self.policy.scopes:
            return ()
        if self.answer is None or not self.answer.standing:
            return (policy,)
        return (policy, (b"ratelimit", self.answer.standing.encode()))

    def openai_headers(self) -> RateLimitHeaders:
        """`x-ratelimit-limit-tokens` and the like, of requests and of tokens as far as they are limited."""
        latest = self if self.tokens is None else self.tokens
        return tuple(openai_headers(self.policy, latest.answer.standing)) if latest.answer is not None else ()

    def end(self, amount: float | None) -> None:
        """The call took so many GPU-milliseconds, or tokens if these were asked for; None: the estimate stands."""
        end, self._end = self._end, None
        if end is not None:
            end(self, amount)

    def end_with(self, amount: float | None) -> LimitEnd | None:
        """What its home is told at the end of the call."""
        if self.answer is None:
            return None
        tokens = self.part is TOKENS
        counted = self.policy.most_tokens if tokens else self.policy.most_cost
        more = amount - self.answer.charged if amount is not None and counted else 0.0
        if tokens:
            return LimitEnd(self.answer.number, self.tenant, self.function, 0.0, more)
        return LimitEnd(self.answer.number, self.tenant, self.function, more)


def admission_of(
    asked: LimitAsk, policy: LimitPolicy, answer: LimitAnswer, end: Callable[[Admission, float | None], None]
) -> Admission:
    """The admission by a home's answer; `end` is called at the end of the call."""
    tenant, function, part = asked.tenant, asked.function, asked.part
    if answer.verdict is REFUSED:
        return Admission(tenant, function, policy, answer=answer, error=refused(answer, policy, tenant), part=part)
    return Admission(tenant, function, policy, answer=answer, end=end, part=part)


def refuse_money(money: CallMoney, policy: LimitPolicy, answer: LimitAnswer) -> bool:
    """Note why the home refuses a call its money; False: it does not."""
    if answer.verdict is not REFUSED:
        return False
    money.error = refused(answer, policy, money.tenant)
    return True


def settle_admission(
    usage: CallUsage, admission: Admission, costs: Estimates, version: str, prices: CallPrices | None = None
) -> None:
    """End an admission as soon as no start of its call runs."""
    if usage.is_open:
        usage.settle(partial(end_admission, admission=admission, costs=costs, version=version, prices=prices))
    else:
        end_admission(usage, admission, costs, version, prices)


def end_unused(admission: Admission) -> None:
    """End the admission of a call that has not run."""
    admission.end(0.0)
    if admission.tokens is not None:
        admission.tokens.end(0.0)
    for money in admission.money:
        money.end(0)


def end_admission(
    usage: CallUsage, admission: Admission, costs: Estimates, version: str, prices: CallPrices | None = None
) -> None:
    """Give back the permit of a call, count its usage, and learn from it. No start runs any more."""
    version = usage.version or version
    if admission.policy.most_cost and usage.known and not usage.lost:
        costs.learn(version, admission.function, usage.cost)
    # The estimate stands for starts whose cost is not known.
    estimate = admission.answer.charged if admission.answer is not None else 0.0
    admission.end(usage.cost + usage.lost * estimate)
    if (second := admission.tokens) is not None and second.answer is not None:
        if usage.known and not usage.lost:
            costs.learn_tokens(version, admission.function, usage.tokens)
        second.end(usage.tokens + usage.lost * second.answer.charged)
    if admission.money and prices is not None:
        _pay(usage, admission, prices, version)


def _pay(usage: CallUsage, admission: Admission, prices: CallPrices, version: str) -> None:
    """Settle a call's money with what it cost; of starts that nobody metered it is what was reserved."""
    money = admission.money
    first = money[0]
    if usage.lost:
        first.end(None)
    else:
        cost = prices.cost(usage.spent, (first.tenant, first.function, first.key), first.tenant, usage.sold)
        if usage.known and admission.policy.is_soft:
            prices.learn(version, cost)
        first.end(cost)
    for step in money[1:] if len(money) > 1 else ():
        step.end(None if usage.lost else 0)


def unreachable(wait_s: float) -> Unavailable:
    """The error while no home can decide."""
    return Unavailable(
        "The gateway that keeps this tenant's limits does not answer; another one takes over.",
        code="starting",
        retry_after=wait_s,
    )
