"""Limits as they are counted: what a call of one tenant to one function must pass, compiled once.

A policy has up to two scopes, all calls of the tenant and those to the one function. Each counts requests, cost and
concurrency; a call passes all of them or takes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pilotlight_core.model.limits import NEVER, NO_LIMITS, EffectiveLimits, Limits, RateLimitStart
from pilotlight_core.model.money.budgets import Budget, BudgetMode, BudgetsRecord
from pilotlight_gateway.limits.gcra import PS, Rate, rate

COST_UNIT = "gpu-milliseconds"
"""No registered unit (requests, content-bytes, concurrent-requests) counts cost."""
TOKEN_UNIT = "tokens"  # noqa: S105 - no password


@dataclass(frozen=True, kw_only=True, eq=False)
class LimitScope:
    """What is counted together. None or 0: no limit."""

    function: str = ""
    """`tenant:app.function`; "" for all functions of the tenant."""
    requests: Rate | None = None
    cost: Rate | None = None
    concurrency: int = 0
    tokens: Rate | None = None
    names: tuple[str, str, str, str] = ("requests", "cost", "concurrency", "tokens")
    limits: Limits = NO_LIMITS
    """As set, for refusals."""
    begun: RateLimitStart = NEVER
    """The homes under which its rates were first limited."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LimitPolicy:
    scopes: tuple[LimitScope, ...]
    """Empty: nothing is counted and no home is asked."""
    payload: int | None
    """Bytes of the largest body; None: no limit here."""
    header: str
    header_line: tuple[bytes, bytes]
    """The same, as answers carry it."""
    holds: bool
    """Whether it counts running calls, so that their end matters."""
    counts_requests: bool
    most_cost: float
    """Of one call; 0: cost is not counted. The excess of a call over it is counted at its end."""
    most_tokens: float
    """The same of tokens."""
    prompt_tokens: int | None = None
    """Of one call's prompt; None: no limit here."""
    output_tokens: int | None = None
    """Of its answer."""
    budgets: tuple[Budget, ...] = ()
    """Those that a call may fall under, with some key: it asks for money when it has been read."""
    is_soft: bool = False
    """Whether one of them reserves what calls are likely to cost, so that it has to be learnt."""

    @property
    def counts_tokens(self) -> bool:
        """Whether what a call asks for has to be looked at when it has been read."""
        return bool(self.most_tokens) or self.bounds_tokens

    @property
    def bounds_tokens(self) -> bool:
        """Whether one call may have only so many."""
        return self.prompt_tokens is not None or self.output_tokens is not None


PolicyOf = Callable[[str, str], LimitPolicy]
"""(tenant, function) -> policy."""


def policy_of(limits: EffectiveLimits, function: str, budgets: Iterable[Budget] = ()) -> LimitPolicy:
    both = (_scope(limits.tenant, "", limits.tenant_begun), _scope(limits.function, function, limits.function_begun))
    scopes = tuple(scope for scope in both if scope)
    mine = tuple(one for one in budgets if one.function in ("", function))
    header = ",".join(item for scope in scopes for item in _items(scope))
    return LimitPolicy(
        scopes=scopes,
        payload=limits.function.payload_bytes,
        header=header,
        header_line=(b"ratelimit-policy", header.encode()),
        holds=any(scope.concurrency for scope in scopes),
        counts_requests=any(scope.requests for scope in scopes),
        most_cost=_most(scope.cost for scope in scopes),
        most_tokens=_most(scope.tokens for scope in scopes),
        prompt_tokens=limits.function.prompt_tokens,
        output_tokens=limits.function.output_tokens,
        budgets=mine,
        is_soft=any(one.mode is BudgetMode.SOFT for one in mine),
    )


def _most(rates: Iterable[Rate | None]) -> float:
    return min((rate.room / rate.interval for rate in rates if rate is not None), default=0.0)


def _scope(limits: Limits, function: str, begun: RateLimitStart) -> LimitScope | None:
    requests, cost, tokens = limits.requests_per_s, limits.cost_per_s, limits.tokens_per_s
    if requests is None and cost is None and tokens is None and limits.concurrency is None:
        return None
    prefix = "function-" if function else ""
    return LimitScope(
        function=function,
        requests=rate(requests, limits.request_burst) if requests is not None else None,
        cost=rate(cost, limits.spending_burst) if cost is not None else None,
        concurrency=limits.concurrency or 0,
        tokens=rate(tokens, limits.token_burst) if tokens is not None else None,
        names=(f"{prefix}requests", f"{prefix}cost", f"{prefix}concurrency", f"{prefix}tokens"),
        limits=limits,
        begun=begun,
    )


def _items(scope: LimitScope) -> list[str]:
    requests, cost, concurrency, tokens = scope.names
    items = []
    if scope.requests is not None:
        items.append(f'"{requests}";{_quota(scope.requests)}')
    if scope.cost is not None:
        items.append(f'"{cost}";{_quota(scope.cost)};qu="{COST_UNIT}"')
    if scope.concurrency:
        items.append(f'"{concurrency}";q={scope.concurrency};qu="concurrent-requests"')
    if scope.tokens is not None:
        items.append(f'"{tokens}";{_quota(scope.tokens)};qu="{TOKEN_UNIT}"')
    return items


def _quota(rate: Rate) -> str:
    """Quota and window: the shortest window of whole seconds that holds the burst, and its quota."""
    window = max(1, math.ceil(rate.room / PS))
    return f"q={window * PS // rate.interval};w={window}"


class LimitPolicies:
    """The policies of all tenants, compiled on first use and when limits change."""

    def __init__(
        self,
        limits: Callable[[str, str], EffectiveLimits],
        budgets: Callable[[str], BudgetsRecord | None] = lambda _: None,
    ) -> None:
        self._limits = limits
        self._budgets = budgets
        self._known: dict[tuple[str, str], tuple[EffectiveLimits, BudgetsRecord | None, LimitPolicy]] = {}

    def __call__(self, tenant: str, function: str) -> LimitPolicy:
        limits, budgets = self._limits(tenant, function), self._budgets(tenant)
        known = self._known.get((tenant, function))
        # By identity first: limits in memory are the same object until they change.
        if known is not None and known[1] is budgets and (known[0] is limits or known[0] == limits):
            return known[2]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        policy = policy_of(limits, function, budgets.budgets if budgets is not None else ())
        self._known[tenant, function] = limits, budgets, policy
        return policy


MOST_KNOWN = 50_000
"""Policies in memory, about 1 KiB each; beyond it all are compiled anew."""
