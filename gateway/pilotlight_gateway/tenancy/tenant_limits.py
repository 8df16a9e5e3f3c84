"""Limits of tenants and of their calls to single functions, and tiers. The operator sets them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from pilotlight_core.model.api.tenancy_api import FunctionLimitsInfo, LimitsInfo, TierInfo, TierRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.ids import NAME, check_name, parse_ref
from pilotlight_core.model.limits import (
    LONG_AGO,
    NEVER,
    NO_LIMITS,
    TIERS_AT_MOST,
    Limits,
    RateLimitStart,
    Tier,
)
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.tenancy.guarantees import check_guarantees
from pilotlight_gateway.tenancy.name_hints import check_owned
from pilotlight_gateway.tenancy.registry_port import RegistryPort

FUNCTIONS_AT_MOST = 1_000
"""Functions of one tenant with limits of their own."""
BEGUN_AT_MOST = 2 * FUNCTIONS_AT_MOST
"""Scopes whose first limiting is recorded; others count as limited for long."""


def full_name(tenant: str, text: str) -> str:
    """`owner:app.function`, where `text` may omit an owner that is `tenant`.

    Raises:
        BadInput: it is not a function, or pins a version.
    """
    ref = parse_ref(text)
    if ref.pin is not None:
        raise BadInput("function: limits hold for all versions; leave the part after @ out.", field="function")
    return f"{ref.tenant or tenant}:{ref.app}.{ref.function}"


async def check_deployed(registry: RegistryPort, function: str) -> None:
    """Check that a function (full name) exists: a misspelt limit would have no effect.

    Raises:
        UnknownFunction: its owner never had it; suggests a name.
    """
    ref = parse_ref(function)
    await check_owned(registry, ref.tenant or "", ref)


async def limits_info(registry: RegistryPort, tenant: str) -> LimitsInfo:
    """The limits that are set for a tenant, and the effective ones."""
    own = await registry.limits_set(tenant) or LimitsRecord(tenant=tenant)
    tier = registry.tier_of(tenant)
    return LimitsInfo(
        tenant=tenant,
        tier=tier.name,
        limits=own.limits,
        functions=own.functions,
        effective=own.limits.over(tier.limits),
    )


async def function_limits_info(registry: RegistryPort, tenant: str, function: str) -> FunctionLimitsInfo:
    """As `limits_info`, for a tenant's calls to one function.

    Raises:
        NotFound: none are set.
    """
    own = await registry.limits_set(tenant)
    if own is None or function not in own.functions:
        raise _nothing_set(function)
    return FunctionLimitsInfo(
        tenant=tenant,
        function=function,
        limits=own.functions[function],
        effective=registry.limits(tenant, function).function,
    )


async def set_limits(
    registry: RegistryPort, tenant: str, limits: Limits, function: str | None = None, *, home: int
) -> None:
    """Replace the limits of a tenant, or of its calls to `function` (full name).

    `home` is the epoch of the present, or a recent, home of its limits.

    Raises:
        BadInput: more than the whole fleet would be guaranteed.
        Conflict: too many functions have limits of their own.
    """
    if function is None:
        check_guarantees(registry, own={tenant: limits})

    def changed(present: LimitsRecord | None) -> LimitsRecord:
        record = present or LimitsRecord(tenant=tenant)
        if function is None:
            before = [record.limits, *_of_tiers(registry, tenant)]
            begun = begun_by(record, "", before, limits, home)
            return msgspec.structs.replace(record, limits=limits, begun=begun)
        record = msgspec.structs.replace(
            record, begun=begun_by(record, function, [record.functions.get(function, NO_LIMITS)], limits, home)
        )
        functions = record.functions | {function: limits}
        if len(functions) > FUNCTIONS_AT_MOST:
            raise Conflict(f"{tenant} has limits for {FUNCTIONS_AT_MOST} functions already: remove some first.")
        return msgspec.structs.replace(record, functions=functions)

    await registry.change_limits(tenant, changed)


def begun_by(
    record: LimitsRecord, scope: str, before: Iterable[Limits], limits: Limits, home: int
) -> dict[str, RateLimitStart]:
    """When a scope was first limited, for its record with new limits.

    `before` are limits that may have applied until now. A scope that may have been limited never counts as new:
    otherwise a limit that is set again after the loss of its home would grant a second burst.
    """
    known, past = record.begun.get(scope, NEVER), tuple(before)
    if len(record.begun) >= BEGUN_AT_MOST:
        home = 0

    def first(since: int, was: bool, is_now: bool) -> int:
        if since or not (was or is_now):
            return since
        return LONG_AGO if was or not home else home

    begun = RateLimitStart(
        requests=first(known.requests, any(one.requests_per_s for one in past), limits.requests_per_s is not None),
        cost=first(known.cost, any(one.cost_per_s for one in past), limits.cost_per_s is not None),
        tokens=first(known.tokens, any(one.tokens_per_s for one in past), limits.tokens_per_s is not None),
    )
    if begun == NEVER or (scope not in record.begun and len(record.begun) >= BEGUN_AT_MOST):
        return record.begun
    return record.begun | {scope: begun}


def _of_tiers(registry: RegistryPort, tenant: str) -> Iterator[Limits]:
    """The limits of a tenant's tier, present and configured; of all tiers if the tenant has changed its tier."""
    record, tier = registry.tenant_nowait(tenant), registry.tier_of(tenant)
    for one in registry.tiers() if record is None or record.moved else [tier]:
        yield one.limits
        if (configured := registry.tier_configured(one.name)) is not None:
            yield configured.limits


async def clear_limits(registry: RegistryPort, tenant: str, function: str | None = None) -> None:
    """Return to the tier's limits, or to none for `function`.

    Raises:
        BadInput: the tier's would guarantee more than the whole fleet.
        NotFound: none are set for the function.
    """
    if function is None:
        await set_limits(registry, tenant, NO_LIMITS, home=0)
        return

    def cleared(present: LimitsRecord | None) -> LimitsRecord:
        if present is None or function not in present.functions:
            raise _nothing_set(function)
        rest = {name: limits for name, limits in present.functions.items() if name != function}
        return msgspec.structs.replace(present, functions=rest)

    await registry.change_limits(tenant, cleared)


def tier_infos(registry: RegistryPort) -> list[TierInfo]:
    """All tiers, in the order of shedding."""
    return [tier_info(registry, tier) for tier in registry.tiers()]


def tier_info(registry: RegistryPort, tier: Tier) -> TierInfo:
    source = "configuration" if tier == registry.tier_configured(tier.name) else "registry"
    return TierInfo(**msgspec.structs.asdict(tier), source=source)


def known_tier(registry: RegistryPort, name: str) -> Tier:
    """Raises NotFound for an unknown tier."""
    found = registry.tier(name)
    if found is None:
        raise _no_tier(name)
    return found


async def put_tier(registry: RegistryPort, name: str, request: TierRequest) -> Tier:
    """Create or replace a tier, also over a configured one.

    Raises:
        BadInput: the name is invalid, or more than the whole fleet would be guaranteed.
        Conflict: there are too many tiers.
    """
    tier = Tier(name=check_name(name, "tier"), **msgspec.structs.asdict(request))
    check_guarantees(registry, tiers={tier.name: tier.limits})
    if registry.tier(name) is None and len(registry.tiers()) >= TIERS_AT_MOST:
        raise Conflict(f"There are {TIERS_AT_MOST} tiers already.")
    await registry.change_tier(name, lambda _: tier)
    return tier


async def drop_tier(registry: RegistryPort, name: str) -> None:
    """Remove a tier from the registry; a configured one applies again.

    Raises:
        NotFound: the registry has no such tier.
        BadInput: the configured one would guarantee more than the whole fleet.
        Conflict: none is configured, and tenants are in it.
    """
    if not NAME.fullmatch(name):
        raise _no_tier(name)
    configured = registry.tier_configured(name)
    if configured is not None:
        check_guarantees(registry, tiers={name: configured.limits})
    elif any(tenant.tier == name for tenant in registry.tenants()):
        raise Conflict(f"There are tenants in the tier {name}: move them to another one first.")

    def dropped(present: Tier | None) -> None:
        if present is None:
            raise _no_tier(name)

    await registry.change_tier(name, dropped)


def _no_tier(name: str) -> NotFound:
    return NotFound(f"There is no tier {name[:100]} in the registry.")


def _nothing_set(function: str) -> NotFound:
    return NotFound(f"No limits are set for {function}.")
