"""The registry's records of who may do what: tenants, keys, the tenants' own limits, and shared functions."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.limits import DEFAULT_TIER, NO_LIMITS, Limits, RateLimitStart

EVERYBODY = "*"
"""In a share: every tenant of the platform."""


class TenantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who owns functions. Key: `tenant.{name}`."""

    name: str
    created_at: float
    """Unix seconds."""
    tier: str = DEFAULT_TIER
    weight: float = 1.0
    """Its share among tenants of its tier that compete; the tier's weight multiplies it."""
    disabled: bool = False
    home: int = 0
    """The epoch of the home of its limits when it was made, before which nobody counted for it; 0: not known."""
    moved: bool = False
    """Its tier was another one once."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An API key. The secret itself is nowhere: only its digest. Key: `key.{id}`."""

    id: str
    tenant: str
    sha256: str
    """Of the secret, hexadecimal."""
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None = None
    """Unix seconds."""
    label: str = ""
    revoked: bool = False
    replaced_by: str = ""
    """The id of the key that a rotation made for it."""


class LimitsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator has set for one tenant. Key: `limits.{tenant}`."""

    tenant: str
    limits: Limits = NO_LIMITS
    """Over its tier's."""
    functions: dict[str, Limits] = {}
    """By the owner's full name of the function, `tenant:app.function`."""
    begun: dict[str, RateLimitStart] = {}
    """By the same, "" for all calls of the tenant. What was limited once stays here when it is not any more, so that
    nobody gets a full burst for being limited anew."""


class FunctionShareRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Which other tenants may call an app's functions. Key: `share.{tenant}.{app}`; outlives deploys."""

    tenant: str
    """The owner."""
    app: str
    grants: dict[str, tuple[str, ...]] = {}
    """tenant (or `*`, everybody) -> its functions; empty means all functions of the app."""

    def opens(self, function: str, tenant: str) -> bool:
        """Whether `tenant` may call `function`."""
        return any(
            functions is not None and (not functions or function in functions)
            for functions in (self.grants.get(tenant), self.grants.get(EVERYBODY))
        )
