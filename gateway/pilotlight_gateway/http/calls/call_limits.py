"""A call and its tenant's limits: counted before its body is read, shown in the headers of its answer."""

from __future__ import annotations

from functools import lru_cache, partial

from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.http.protocol.http_exchange import Exchange
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_admission import end_admission
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics


class CallLimits:
    """The limits of calls' tenants, as a request meets them."""

    def __init__(self, limiter: Limiter, costs: Estimates, metrics: GatewayMetrics) -> None:
        self._limiter = limiter
        self._costs = costs
        self._metrics = metrics

    async def admit(
        self, exchange: Exchange, version: VersionRecord, body: BodyLimits, part: LimitAskKind
    ) -> BodyLimits:
        """Count a call under its tenant's limits; what its body may be. Whatever happens then, `release` it.

        Raises:
            TooMuch: `rate_limited`, naming the limit that is reached and when it will not be any more.
            Unavailable: the home of the tenant's limits does not answer.
        """
        tenant = exchange.principal.tenant
        function = f"{version.tenant}:{version.app}.{version.function}"
        policy = self._limiter.policy(tenant, function)
        if policy.counts_requests if part is LimitAskKind.SUBMISSION else policy.scopes:
            exchange.version = version.id
            cost = self._costs.of(version.id) if policy.most_cost else 0.0
            admission = exchange.admission = await self._limiter.admit(tenant, function, policy, cost, part)
            if admission.error is not None:
                self._metrics.call_failed(admission.error.wire_code)
                raise admission.error
        return body if policy.payload is None else _at_most(body, policy.payload)

    def release(self, exchange: Exchange) -> None:
        """The exchange is over: once its call runs no more, the permit is given back and the cost is counted."""
        if (admission := exchange.admission) is None:
            return
        if exchange.tab is None:
            admission.end(0.0)  # it cannot have run
        else:
            exchange.tab.settle(
                partial(end_admission, admission=admission, costs=self._costs, version=exchange.version)
            )


def usage_of_call(exchange: Exchange) -> CallUsage | None:
    """Where a call notes what it uses; None if its tenant has no limits."""
    if exchange.admission is not None:
        exchange.tab = CallUsage()
    return exchange.tab


@lru_cache(1024)
def _at_most(body: BodyLimits, size: int) -> BodyLimits:
    return BodyLimits(size=min(body.size, size), grace=body.grace, rate=body.rate)
