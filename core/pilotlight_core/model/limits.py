"""The limits of tenants, and the tiers that set them.

A field of `Limits` that is None is not set, and the next layer decides; if none sets it, there is no limit:

    the tenant's own limits for one function  >  the tenant's own limits  >  its tier's limits

Rates and concurrency are counted over all calls of the tenant (`EffectiveLimits.tenant`), and again over its calls to
one function if a limit is set for it (`EffectiveLimits.function`); a call must pass both. The bounds of one call
(`payload_bytes`, `prompt_tokens`, `output_tokens`, `timeout_s`) and of one queue (`queue_calls`, `queue_seconds`) are
in `EffectiveLimits.function`: the nearest layer decides, and may raise as well as lower them. What a tenant keeps and
holds, and how often it manages it (the rest of `Limits`), is limited for the tenant only.

`Registry.limits`, `Registry.tier_of` and `Registry.weight_of` answer from the registry's mirror. Tiers come from
`tiers.toml` beside this module, an operator's file over it, and the registry's records over both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import LONGEST_TIMEOUT_S, Priority
from pilotlight_core.model.strict import convert_strictly

STANDARD_TIERS = Path(__file__).with_name("tiers.toml")
DEFAULT_TIER = "paid"
"""The tier of a tenant whose record names none."""
TIERS_AT_MOST = 32
COST_BURST_S = 10.0
"""Seconds of the full cost rate that make the burst if `cost_burst` is not set, since one call may be long."""
TOKENS_BURST_S = 60.0
"""The same of tokens if `tokens_burst` is not set."""

RatePerSecond = Annotated[float, Meta(ge=1e-3, le=1e9)]
Burst = Annotated[float, Meta(ge=1, le=1e9)]
LimitCount = Annotated[int, Meta(ge=1, le=10**9)]
ByteCount = Annotated[int, Meta(ge=1, le=2**50)]
WholeCount = Annotated[int, Meta(ge=0, le=10**9)]
Rank = Annotated[int, Meta(ge=-1_000, le=1_000)]
TenantWeight = Annotated[float, Meta(ge=1e-3, le=1_000)]
CapacityShare = Annotated[float, Meta(ge=0, le=1)]


class FunctionLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits that can be set for a tenant's calls to one function; None: not set here."""

    requests_per_s: RatePerSecond | None = None
    """Calls admitted per second, in the long run. 0.001 to 1e9."""
    burst: Burst | None = None
    """Calls that may come at once after a pause. At least 1."""
    cost_per_s: RatePerSecond | None = None
    """GPU-milliseconds per second; 1000 keeps one GPU busy. 0.001 to 1e9."""
    cost_burst: Burst | None = None
    """Cost that may be spent at once after a pause. At least 1."""
    tokens_per_s: RatePerSecond | None = None
    """Tokens per second, of prompts and completions, as functions report them. 0.001 to 1e9."""
    tokens_burst: Burst | None = None
    """Tokens that may be used at once after a pause. At least 1."""
    prompt_tokens: LimitCount | None = None
    """Tokens of one call's prompt, estimated at four bytes each where they are not numbered."""
    output_tokens: LimitCount | None = None
    """Tokens of one call's answer: the most `max_tokens`, and what it is if a call names none."""
    concurrency: LimitCount | None = None
    """Calls admitted and not ended, over all gateways. At least 1."""
    payload_bytes: Annotated[int, Meta(ge=1, le=2**40)] | None = None
    """The largest body of one call, in bytes. No call has more than 10 MB, whatever is set."""
    queue_calls: LimitCount | None = None
    queue_seconds: Annotated[float, Meta(ge=1e-3, le=86_400)] | None = None
    """A call is refused when its estimated wait is longer than this many seconds."""

    timeout_s: Annotated[float, Meta(gt=0, le=LONGEST_TIMEOUT_S)] | None = None
    """The longest `timeout=` and `startup_timeout=` of its functions, and what a call may take in all, in seconds."""


class Limits(FunctionLimits, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of one layer; None: not set here."""

    apps: LimitCount | None = None
    """Apps, stopped ones too."""
    functions: LimitCount | None = None
    """Functions of all its apps."""
    versions: LimitCount | None = None
    """Of a function, that are kept: the newest. Older ones are deleted."""
    open_functions: WholeCount | None = None
    """Functions that it shares with everybody."""
    record_bytes: ByteCount | None = None
    """The size of its apps, versions, shares and curves in the registry, which every gateway has in memory."""
    blob_bytes: ByteCount | None = None
    """The size of its files: bundles, manifests of versions, and the inputs and results of jobs and batches."""
    keys: LimitCount | None = None
    """API keys that are valid."""
    deploys_per_hour: LimitCount | None = None
    """Deploys, also refused ones and those that change nothing. A tenth of them may come at once."""
    api_requests_per_s: RatePerSecond | None = None
    """Requests to the API other than calls, per gateway; ten seconds' worth may come at once."""
    open_requests: LimitCount | None = None
    """Requests to the API other than calls at a time, per gateway: readers of logs, and those that wait for jobs."""
    log_bytes_per_hour: ByteCount | None = None
    """What its functions print on one node; a tenth of it may come at once."""
    containers: LimitCount | None = None
    """Containers of its functions at a time, in any state."""
    gpus: WholeCount | None = None
    """GPUs that these containers ask for at a time; a part of a GPU counts as one."""
    floor_containers: WholeCount | None = None
    """Containers kept without calls: the sum of `min_containers=` over its functions."""
    guarantee: CapacityShare | None = None
    """The part of the fleet, 0 to 1, that it gets back from others when it wants it. Of a tier: for each of its
    tenants."""
    borrow: CapacityShare | None = None
    """How much more of the fleet than its guarantee it may have, 0 to 1."""

    @property
    def request_burst(self) -> float:
        """`burst`, or by default one second's worth and at least 1. Requires `requests_per_s`."""
        return self.burst if self.burst is not None else max(1.0, self.requests_per_s or 1.0)

    @property
    def spending_burst(self) -> float:
        """`cost_burst`, or by default ten seconds' worth. Requires `cost_per_s`."""
        return self.cost_burst if self.cost_burst is not None else max(1.0, COST_BURST_S * (self.cost_per_s or 0.0))

    @property
    def token_burst(self) -> float:
        """`tokens_burst`, or by default a minute's worth: limits of tokens are by the minute elsewhere."""
        given = self.tokens_burst
        return given if given is not None else max(1.0, TOKENS_BURST_S * (self.tokens_per_s or 0.0))

    def over(self, base: Limits) -> Limits:
        """These limits, or `base`'s where none is set; a rate that is set here replaces the burst too."""
        if self == NO_LIMITS:
            return base
        merged = _set_fields(base) | _set_fields(self)
        for rate, burst in RATES:
            if getattr(self, rate) is not None and getattr(self, burst) is None:
                merged.pop(burst, None)
        return Limits(**merged)


RATES = (("requests_per_s", "burst"), ("cost_per_s", "cost_burst"), ("tokens_per_s", "tokens_burst"))
"""Rates with their bursts."""
NO_LIMITS = Limits()
_BY_CALL_OR_QUEUE = (
    "payload_bytes", "prompt_tokens", "output_tokens", "queue_calls", "queue_seconds", "timeout_s",
)  # fmt: skip


class RateLimitStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Since when rates are limited: the epoch of the home of the tenant's limits when they were first set.

    From it a home knows whether an earlier home may have counted. 0: never limited; `LONG_AGO`: unknown.
    """

    requests: int = 0
    cost: int = 0
    tokens: int = 0


LONG_AGO = -1
NEVER = RateLimitStart()


class EffectiveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one tenant's calls to one function; both members apply."""

    tenant: Limits
    """Over all calls of the tenant: its own limits over its tier's."""
    function: Limits
    """Over its calls to this function: rates and concurrency only as set for the function; payload and queue from all
    layers."""
    tenant_begun: RateLimitStart = NEVER
    function_begun: RateLimitStart = NEVER


UNLIMITED = EffectiveLimits(tenant=NO_LIMITS, function=NO_LIMITS)


class ReachedLimit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit that refuses a call: a member of `limits` in the problem document."""

    limit: str
    """Its field, such as `requests_per_s`."""
    tenant: str
    function: str | None = None
    """`tenant:app.function`, if only calls to that one count."""
    allowed: float
    """Per second, or at a time."""
    burst: float | None = None
    """Of a rate."""
    left: float | None = None
    """Of a rate: the present rest."""
    current: float | None = None
    """Of the others: the present number."""


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    rank: Rank = 0
    """The order in which tiers are shed when capacity shrinks: the lowest first."""
    weight: TenantWeight = 1.0
    """The share of a tenant of this tier among competing tenants; multiplied by the tenant's own weight."""
    priority_ceiling: Priority = Priority.INTERACTIVE
    """The highest class of its calls; a higher one is lowered to it."""
    reserved_share: CapacityShare = 0.0
    """The part of a function's capacity, 0 to 1, that is reserved for calls of this tier."""
    limits: Limits = NO_LIMITS
    """Of each tenant of the tier; its own limits are over them."""


def effective(tier: Limits, tenant: Limits, function: Limits) -> EffectiveLimits:
    """The limits of a call from its layers, by the rules at the head of this module."""
    whole = tenant.over(tier)
    by_call_or_queue = {field: getattr(whole, field) for field in _BY_CALL_OR_QUEUE}
    return EffectiveLimits(tenant=whole, function=function.over(Limits(**by_call_or_queue)))


def load_tiers(override: Path | None = None) -> dict[str, Tier]:
    """The standard tiers by name; those of `override`, a TOML file of the same shape, replace them as a whole.

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
    import tomllib  # here, since other users of this module need no TOML

    try:
        data = tomllib.loads(path.read_text())
        sections: dict[str, dict[str, Any]] = msgspec.convert(data.get("tiers", {}), dict[str, dict[str, Any]])
        tiers = [convert_strictly({"name": name} | section, Tier) for name, section in sections.items()]
        return {check_name(tier.name, "tier"): tier for tier in tiers}
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError, BadInput) as error:
        reason = error.detail if isinstance(error, BadInput) else str(error)
        raise BadInput(f"the tiers file {path} cannot be used: {reason}", field="tiers") from error


def _set_fields(limits: Limits) -> dict[str, Any]:
    return {name: value for name in limits.__struct_fields__ if (value := getattr(limits, name)) is not None}
