"""What a caller hears whose call would be too much: which limit, whose, how much, and when to come back.

Nothing in it is about any other tenant: limits count the calls of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.limiting import LimitAnswer
from pilotlight_core.model.limits import Reached
from pilotlight_gateway.limits.policy import Policy, Scope

LEFT = re.compile(r'"([a-z-]+)";r=(\d+)')


def refused(answer: LimitAnswer, policy: Policy, tenant: str) -> TooMuch:
    """The error of a call of `tenant` that its home has refused."""
    reached = [one for scope in policy.scopes for one in _reached(scope, answer, tenant)]
    # Limits may have been changed on the way: then the home knows some that we do not.
    sentences = [_sentence(one) for one in reached] or [f"The limit of {' and '.join(answer.violated)} is reached."]
    return TooMuch(
        " ".join(sentences),
        code="rate_limited",
        retry_after=answer.wait,
        limits=reached,
        **{"violated-policies": list(answer.violated)},
    )


def _reached(scope: Scope, answer: LimitAnswer, tenant: str) -> Iterator[Reached]:
    limits, (requests, cost, concurrency) = scope.limits, scope.names
    left = dict(LEFT.findall(answer.standing))
    of = partial(Reached, tenant=tenant, function=scope.function or None)
    if requests in answer.violated and (rate := limits.requests_per_s):
        burst, there = limits.request_burst, float(left.get(requests, 0))
        yield of(limit="requests_per_s", allowed=rate, burst=burst, left=there)
    if cost in answer.violated and (rate := limits.cost_per_s):
        burst, there = limits.spending_burst, float(left.get(cost, 0))
        yield of(limit="cost_per_s", allowed=rate, burst=burst, left=there)
    if concurrency in answer.violated and (most := limits.concurrency):
        yield of(limit="concurrency", allowed=most, current=most)


def _sentence(one: Reached) -> str:
    to = f" to {one.function}" if one.function else ""
    if one.limit == "requests_per_s":
        return f"{one.tenant} may make {one.allowed:g} calls a second{to}, {one.burst:g} at once: none is left now."
    if one.limit == "cost_per_s":
        spent = f"{one.allowed:g} GPU-milliseconds a second, {one.burst:g} at once"
        return f"{one.tenant} may spend {spent}, on calls{to}: {one.left:g} are left now."
    return f"{one.tenant} may have {one.allowed:g} calls{to} run at a time, and so many do."
