"""The result of asking for one call: whether it may begin, its error, and the headers of its answer."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.model.errors import PilotlightError, Unavailable
from pilotlight_core.model.messages.limiting import LimitAnswer, LimitVerdict
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.limits.refusals import refused

RateLimitHeaders = tuple[tuple[bytes, bytes], ...]


class Admission:
    """One call under a policy. If it is not refused, its owner calls `end` exactly once."""

    __slots__ = ("_end", "answer", "error", "function", "policy", "tenant")

    def __init__(
        self,
        tenant: str,
        function: str,
        policy: LimitPolicy,
        *,
        answer: LimitAnswer | None = None,
        error: PilotlightError | None = None,
        end: Callable[[Admission, float | None], None] | None = None,
    ) -> None:
        self.tenant = tenant
        self.function = function
        self.policy = policy
        self.answer = answer
        self.error = error
        """Why the call may not begin; None: it may."""
        self._end = end

    def headers(self) -> RateLimitHeaders:
        """RateLimit-Policy, and RateLimit if known."""
        policy = (b"ratelimit-policy", self.policy.header.encode())
        if self.answer is None or not self.answer.standing:
            return (policy,)
        return (policy, (b"ratelimit", self.answer.standing.encode()))

    def end(self, cost: float | None) -> None:
        """The call took `cost` GPU-milliseconds; None: the estimate stands."""
        end, self._end = self._end, None
        if end is not None:
            end(self, cost)


def admission_of(
    tenant: str, function: str, policy: LimitPolicy, answer: LimitAnswer, end: Callable[[Admission, float | None], None]
) -> Admission:
    """The admission by a home's answer; `end` is called at the end of the call."""
    if answer.verdict is LimitVerdict.REFUSED:
        return Admission(tenant, function, policy, answer=answer, error=refused(answer, policy, tenant))
    return Admission(tenant, function, policy, answer=answer, end=end)


def end_admission(usage: CallUsage, admission: Admission, costs: Estimates, version: str) -> None:
    """Give back the permit of a call, count its usage, and learn from it. No start runs any more."""
    if admission.policy.most_cost and usage.known and not usage.lost:
        costs.learn(version, usage.cost)
    # The estimate stands for starts whose cost is not known.
    estimate = admission.answer.charged if admission.answer is not None else 0.0
    admission.end(usage.cost + usage.lost * estimate)


def unreachable(wait_s: float) -> Unavailable:
    """The error while no home can decide."""
    return Unavailable(
        "The gateway that keeps this tenant's limits does not answer; another one takes over.",
        code="starting",
        retry_after=wait_s,
    )
