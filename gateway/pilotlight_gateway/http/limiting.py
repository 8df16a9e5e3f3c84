"""A call and its tenant's limits: counted before its body is read, and told in the headers of its answer."""

from __future__ import annotations

from functools import lru_cache

from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.units import NS_PER_MS, WHOLE_DEVICE
from pilotlight_gateway.http.bodies import BodyLimits
from pilotlight_gateway.http.exchange import Exchange
from pilotlight_gateway.http.services import Services

MAY_HAVE_RUN = frozenset({200, 408, 499, 500, 502, 504})
"""Of a call whose cost is not known: then the estimate stands. With any other status it never ran."""


async def admit(services: Services, exchange: Exchange, version: VersionRecord, body: BodyLimits) -> BodyLimits:
    """Count a call under its tenant's limits; what its body may be. Whatever happens then, `settle` it.

    Raises:
        TooMuch: `rate_limited`, naming what is reached and when it will not be any more.
        Unavailable: if nobody can say so now.
    """
    tenant = exchange.principal.tenant
    function = f"{version.tenant}:{version.app}.{version.function}"
    policy = services.limits.policy(tenant, function)
    if policy.scopes:
        exchange.version = version.id
        cost = services.costs.of(version.id) if policy.most_cost else 0.0
        admission = exchange.admission = await services.limits.admit(tenant, function, policy, cost)
        if admission.error is not None:
            services.metrics.call_failed(admission.error.wire_code)
            raise admission.error
    return body if policy.payload is None else _at_most(body, policy.payload)


def settle(services: Services, exchange: Exchange) -> None:
    """The exchange is over: its call runs no more, and what it cost is known."""
    if exchange.admission is None:
        return
    cost = None if exchange.status in MAY_HAVE_RUN else 0.0
    if (spent := exchange.spent) is not None:
        cost = spent.ns * spent.ppm / (WHOLE_DEVICE * NS_PER_MS)
        if exchange.admission.policy.most_cost:
            services.costs.learn(exchange.version, cost)
    exchange.admission.end(cost)


@lru_cache(1024)
def _at_most(body: BodyLimits, size: int) -> BodyLimits:
    return BodyLimits(size=min(body.size, size), grace=body.grace, rate=body.rate)
