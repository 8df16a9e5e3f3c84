"""The error of a refused call: which limit, whose, how much, and when to come back. It reveals no other tenant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache, partial

import msgspec

from pilotlight_core.model.api.budget_api import BudgetLeft, usd_text
from pilotlight_core.model.errors import BudgetExhausted, TooMuch
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.limiting import BudgetShortage, LimitAnswer
from pilotlight_core.model.money.budgets import PREPAID
from pilotlight_gateway.limits.limit_policy import LimitPolicy, LimitScope

REQUESTS, COST, TOKENS = "requests_per_s", "cost_per_s", "tokens_per_s"
METERED = (COST, TOKENS)
"""What may have a rest that is too little."""
LEFT = re.compile(r'"([a-z-]+)";r=(\d+)')


def refused(answer: LimitAnswer, policy: LimitPolicy, tenant: str) -> TooMuch:
    """The error of a call that its home has refused."""
    if answer.shortage is not None:
        return _exhausted(answer.shortage, tenant, answer.wait_s)
    reached, sentence = _reached(policy.scopes, answer.violated, tenant)
    if any(one.limit in METERED for one in reached):
        reached = tuple(_with_rest(one, answer) if one.limit in METERED else one for one in reached)
        sentence = " ".join(map(_sentence, reached))
    # After a change the home may know limits that are not known here.
    return TooMuch(
        sentence or f"The limit of {' and '.join(answer.violated)} is reached.",
        code="rate_limited",
        retry_after=answer.wait_s,
        limits=reached,
        **{"violated-policies": list(answer.violated)},
    )


def _exhausted(short: BudgetShortage, tenant: str, wait_s: float) -> BudgetExhausted:
    resets = (
        datetime.fromtimestamp(short.resets_at, UTC).isoformat().replace("+00:00", "Z") if short.resets_at else None
    )
    whose = f" for {short.function}" if short.function else f" for the key {short.key}" if short.key else ""
    left, held = (
        usd_text(short.left),
        f", {usd_text(short.reserved)} are reserved for calls that run" * bool(short.reserved),
    )
    again = f" It begins anew at {resets}." if resets else ""
    if short.budget == PREPAID:
        again = " It is what the tenant has paid ahead, and grows with the next credit."
    return BudgetExhausted(
        f"The budget {short.budget} of {tenant}{whose} is {usd_text(short.amount)} USD: {left} are left{held}, and "
        f"{usd_text(short.asked)} were asked for.{again}",
        retry_after=wait_s or None,
        budget=BudgetLeft(
            id=short.budget,
            tenant=tenant,
            function=short.function or None,
            key=short.key or None,
            period=short.period,
            usd=usd_text(short.amount),
            spent_usd=usd_text(short.spent),
            reserved_usd=usd_text(short.reserved),
            left_usd=left,
            asked_usd=usd_text(short.asked),
            resets_at=resets,
        ),
    )


@lru_cache(4_096)
def _reached(
    scopes: tuple[LimitScope, ...], violated: tuple[str, ...], tenant: str
) -> tuple[tuple[ReachedLimit, ...], str]:
    """Cached, since a tenant over its limit is refused a thousand times."""
    reached = tuple(one for scope in scopes for one in _of_scope(scope, violated, tenant))
    return reached, " ".join(map(_sentence, reached))


def _of_scope(scope: LimitScope, violated: tuple[str, ...], tenant: str) -> Iterator[ReachedLimit]:
    limits, (requests, cost, concurrency, tokens) = scope.limits, scope.names
    of = partial(ReachedLimit, tenant=tenant, function=scope.function or None)
    if requests in violated and (rate := limits.requests_per_s):
        yield of(limit=REQUESTS, allowed=rate, burst=limits.request_burst, left=0.0)
    if cost in violated and (rate := limits.cost_per_s):
        yield of(limit=COST, allowed=rate, burst=limits.spending_burst, left=0.0)
    if tokens in violated and (rate := limits.tokens_per_s):
        yield of(limit=TOKENS, allowed=rate, burst=limits.token_burst, left=0.0)
    if concurrency in violated and (most := limits.concurrency):
        yield of(limit="concurrency", allowed=most, current=most)


def _with_rest(one: ReachedLimit, answer: LimitAnswer) -> ReachedLimit:
    """With what is left: too little for this call, but maybe not 0."""
    name = one.limit.removesuffix("_per_s")
    left = dict(LEFT.findall(answer.standing)).get(f"function-{name}" if one.function else name, 0)
    return msgspec.structs.replace(one, left=float(left))


def _sentence(one: ReachedLimit) -> str:
    to = f" to {one.function}" if one.function else ""
    if one.limit == REQUESTS:
        return f"{one.tenant} may make {one.allowed:g} calls a second{to}, {one.burst:g} at once: none is left now."
    if one.limit == COST:
        spent = f"{one.allowed:g} GPU-milliseconds a second, {one.burst:g} at once"
        return f"{one.tenant} may spend {spent}, on calls{to}: {one.left:g} are left now."
    if one.limit == TOKENS:
        used = f"{one.allowed:g} tokens a second, {one.burst:g} at once"
        return f"{one.tenant} may use {used}, in calls{to}: {one.left:g} are left now."
    return f"{one.tenant} may have {one.allowed:g} calls{to} run at a time, and so many do."
