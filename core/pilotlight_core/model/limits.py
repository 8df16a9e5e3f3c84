"""How much a tenant may ask for: limits, and the tiers that give them.

A field of `Limits` that is None is *not set here*: the next layer says, and where no layer says there is no limit.

    the tenant's own limits for one function  >  the tenant's own limits  >  its tier's limits

Rates and concurrency are counted twice, by tenant over all its calls (`EffectiveLimits.tenant`) and by tenant and
function where a limit was set for that function (`EffectiveLimits.function`); a call must pass both. The bounds of one
call (`payload_bytes`) and of one queue (`queue_calls`, `queue_seconds`) hold per function anyway: there the nearest
layer that sets one wins, and it may raise as well as lower. Read them from `EffectiveLimits.function`.

Everybody reads them from the registry's mirror, without waiting: `registry.limits(tenant, function) -> EffectiveLimits`
(`function` is the owner's full name, `tenant:app.function`), `registry.tier_of(tenant) -> Tier` and
`registry.weight_of(tenant) -> float`. They are cached, and change as soon as the mirror does.

Tiers are configuration: `tiers.toml` beside this module, an operator's file over it, and what the operator has put into
the registry over both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import Priority

STANDARD_TIERS = Path(__file__).with_name("tiers.toml")
DEFAULT_TIER = "paid"
"""The tier of a tenant whose record names none."""
TIERS_AT_MOST = 32
COST_BURST_S = 10.0
"""Seconds of the full cost rate that may be spent at once where `cost_burst` is not set: one call may be long."""

RatePerSecond = Annotated[float, Meta(ge=1e-3, le=1e9)]
Burst = Annotated[float, Meta(ge=1, le=1e9)]
LimitCount = Annotated[int, Meta(ge=1, le=10**9)]
Rank = Annotated[int, Meta(ge=-1_000, le=1_000)]
TenantWeight = Annotated[float, Meta(ge=1e-3, le=1_000)]
CapacityShare = Annotated[float, Meta(ge=0, le=1)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a tenant may ask for; None: not set here."""

    requests_per_s: RatePerSecond | None = None
    """Calls admitted per second, in the long run. 0.001 to 1e9."""
    burst: Burst | None = None
    """Calls that may come at once after a pause. At least 1."""
    cost_per_s: RatePerSecond | None = None
    """GPU-milliseconds (or the function's own cost units) per second; 1000 keeps one GPU busy. 0.001 to 1e9."""
    cost_burst: Burst | None = None
    """Cost that may be spent at once after a pause. At least 1."""
    concurrency: LimitCount | None = None
    """Calls admitted and not ended, over all gateways. At least 1."""
    payload_bytes: Annotated[int, Meta(ge=1, le=2**40)] | None = None
    """The largest body of one call, in bytes."""
    queue_calls: LimitCount | None = None
    """Calls that may wait for one function."""
    queue_seconds: Annotated[float, Meta(ge=1e-3, le=86_400)] | None = None
    """A call is refused when its estimated wait is longer than this many seconds."""

    @property
    def request_burst(self) -> float:
        """`burst`, or where it is not set one second's worth and at least 1. For use where `requests_per_s` is set."""
        return self.burst if self.burst is not None else max(1.0, self.requests_per_s or 1.0)

    @property
    def spending_burst(self) -> float:
        """`cost_burst`, or where it is not set ten seconds' worth. For use where `cost_per_s` is set."""
        return self.cost_burst if self.cost_burst is not None else max(1.0, COST_BURST_S * (self.cost_per_s or 0.0))

    def over(self, base: Limits) -> Limits:
        """These limits, and `base`'s where nothing is set here; a rate that is set here brings its own burst."""
        if self == NO_LIMITS:
            return base
        merged = _set_fields(base) | _set_fields(self)
        for rate, burst in (("requests_per_s", "burst"), ("cost_per_s", "cost_burst")):
            if getattr(self, rate) is not None and getattr(self, burst) is None:
                merged.pop(burst, None)
        return Limits(**merged)


NO_LIMITS = Limits()
_BY_CALL_OR_QUEUE = ("payload_bytes", "queue_calls", "queue_seconds")


class RateLimitStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Since when rates are limited: the epoch of the home of the tenant's limits when they were first set.

    A home knows by it whether a former one may have counted. 0: never limited; `LONG_AGO`: nobody knows.
    """

    requests: int = 0
    cost: int = 0


LONG_AGO = -1
NEVER = RateLimitStart()


class EffectiveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds the calls of one tenant to one function; both members hold."""

    tenant: Limits
    """Over all calls of the tenant: its own limits over its tier's."""
    function: Limits
    """Over its calls to this function: rates and concurrency only as set for this function; payload and queue whole."""
    tenant_begun: RateLimitStart = NEVER
    function_begun: RateLimitStart = NEVER


UNLIMITED = EffectiveLimits(tenant=NO_LIMITS, function=NO_LIMITS)


class ReachedLimit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit that refuses a call: a member of `limits` in the problem document."""

    limit: str
    """As it is set: `requests_per_s`, `cost_per_s`, `concurrency`, `queue_calls` or `queue_seconds`."""
    tenant: str
    """Whose calls it counts."""
    function: str | None = None
    """`tenant:app.function`, if only calls to that one."""
    allowed: float
    """Per second, or at a time."""
    burst: float | None = None
    """Of a rate: so much at once."""
    left: float | None = None
    """Of a rate: what there is now."""
    current: float | None = None
    """Of the others: how many there are now."""


class Tier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A class of tenants."""

    name: str
    rank: Rank = 0
    """The order in which tiers give way when capacity shrinks: the lowest first."""
    weight: TenantWeight = 1.0
    """The share of a tenant of this tier among tenants that compete; its own weight multiplies it."""
    priority_ceiling: Priority = Priority.INTERACTIVE
    """The highest class that its calls may have; a higher one is lowered to it."""
    reserved_share: CapacityShare = 0.0
    """The part of a function's capacity, 0 to 1, that is kept for calls of this tier."""
    limits: Limits = NO_LIMITS
    """Of each tenant of the tier that sets none of its own."""


def effective(tier: Limits, tenant: Limits, function: Limits) -> EffectiveLimits:
    """The layers as what bounds a call: see the head of this module."""
    whole = tenant.over(tier)
    by_call_or_queue = {field: getattr(whole, field) for field in _BY_CALL_OR_QUEUE}
    return EffectiveLimits(tenant=whole, function=function.over(Limits(**by_call_or_queue)))


def load_tiers(override: Path | None = None) -> dict[str, Tier]:
    """The standard tiers by name, with those of `override` (a TOML file of the same shape) over them.

    A tier that the file names is replaced whole.

    Raises:
        BadInput: naming the file and what is wrong in it.
    """
    tiers = _read(STANDARD_TIERS)
    if override is not None:
        tiers |= _read(override)
    if len(tiers) > TIERS_AT_MOST:
        raise BadInput(f"{override}: there may be {TIERS_AT_MOST} tiers, not {len(tiers)}.", field="tiers")
    return tiers


def _read(path: Path) -> dict[str, Tier]:
    import tomllib  # here, since the spec's other readers need no TOML

    try:
        data = tomllib.loads(path.read_text())
        sections: dict[str, dict[str, Any]] = msgspec.convert(data.get("tiers", {}), dict[str, dict[str, Any]])
        tiers = [msgspec.convert({"name": name} | section, Tier) for name, section in sections.items()]
        return {check_name(tier.name, "tier"): tier for tier in tiers}
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError, BadInput) as error:
        reason = error.detail if isinstance(error, BadInput) else str(error)
        raise BadInput(f"the tiers file {path} cannot be used: {reason}", field="tiers") from error


def _set_fields(limits: Limits) -> dict[str, Any]:
    return {name: value for name in limits.__struct_fields__ if (value := getattr(limits, name)) is not None}
