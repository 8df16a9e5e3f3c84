"""The present limits of each tenant, computed from the registry's records and cached until one of them changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pilotlight_core.model.limits import NEVER, NO_LIMITS, EffectiveLimits, Limits, RateLimitStart, Tier, effective
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord

KEPT_AT_MOST = 10_000
DECIDES = ("tenant.", "limits.", "tier.")
"""Prefixes of the records that limits are computed from."""


class Allowances:
    """Tiers and effective limits from memory. `records` is a live mapping of the registry's keys to its records."""

    def __init__(self, records: Mapping[str, Any], configured: Mapping[str, Tier]) -> None:
        self._records = records
        self._configured = dict(configured)
        self._kept: dict[tuple[str, str], EffectiveLimits] = {}

    def changed(self, key: str) -> None:
        if key.startswith(DECIDES):
            self._kept.clear()

    def limits(self, tenant: str, function: str) -> EffectiveLimits:
        found = self._kept.get((tenant, function))
        return found if found is not None else self._work_out(tenant, function)

    def own(self, tenant: str) -> Limits:
        """What is set for the tenant itself."""
        record: LimitsRecord | None = self._records.get(f"limits.{tenant}")
        return record.limits if record is not None else NO_LIMITS

    def tier_of(self, tenant: str) -> Tier:
        """The tenant's tier; for an unknown tenant, or one whose tier is gone, the one that is shed first."""
        record: TenantRecord | None = self._records.get(f"tenant.{tenant}")
        tier = self.tier(record.tier) if record is not None else None
        return tier if tier is not None else min(self.tiers(), key=lambda tier: (tier.rank, tier.name))

    def weight_of(self, tenant: str) -> float:
        """Its share among all competing tenants: its own weight times its tier's."""
        record: TenantRecord | None = self._records.get(f"tenant.{tenant}")
        return self.tier_of(tenant).weight * (record.weight if record is not None else 1.0)

    def tier(self, name: str) -> Tier | None:
        """The registry's tier, else the configured one."""
        found: Tier | None = self._records.get(f"tier.{name}")
        return found if found is not None else self._configured.get(name)

    def configured(self, name: str) -> Tier | None:
        return self._configured.get(name)

    def tiers(self) -> list[Tier]:
        stored = {record.name: record for key, record in self._records.items() if key.startswith("tier.")}
        return sorted((self._configured | stored).values(), key=lambda tier: (tier.rank, tier.name))

    def _work_out(self, tenant: str, function: str) -> EffectiveLimits:
        own: LimitsRecord | None = self._records.get(f"limits.{tenant}")
        tier = self.tier_of(tenant).limits
        of_tenant = own.limits if own is not None else NO_LIMITS
        of_function = own.functions.get(function, NO_LIMITS) if own is not None else NO_LIMITS
        if len(self._kept) >= KEPT_AT_MOST:
            self._kept.clear()
        found = self._kept[tenant, function] = msgspec.structs.replace(
            effective(tier, of_tenant, of_function),
            tenant_begun=self._begun(tenant, own, ""),
            function_begun=self._begun(tenant, own, function),
        )
        return found

    def _begun(self, tenant: str, own: LimitsRecord | None, scope: str) -> RateLimitStart:
        record: TenantRecord | None = self._records.get(f"tenant.{tenant}")
        since = record.home if record is not None else 0
        begun = own.begun.get(scope, NEVER) if own is not None else NEVER
        # The later one: either alone proves that nothing was counted before.
        return RateLimitStart(
            requests=max(begun.requests, since), cost=max(begun.cost, since), tokens=max(begun.tokens, since)
        )
