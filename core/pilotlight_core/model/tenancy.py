"""The registry's records of tenants, API keys, tenants' own limits, and shared functions."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.limits import DEFAULT_TIER, NO_LIMITS, Limits, RateLimitStart

EVERYBODY = "*"
"""In a share: every tenant of the platform."""


class TenantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An owner of functions. Key: `tenant.{name}`."""

    name: str
    created_at: float
    tier: str = DEFAULT_TIER
    weight: float = 1.0
    """Its share among competing tenants of its tier; multiplied by the tier's weight."""
    disabled: bool = False
    home: int = 0
    """The epoch of the home of its limits at its creation, before which nothing was counted for it; 0: unknown."""
    moved: bool = False
    """Whether its tier was ever changed."""
    network: tuple[str, ...] = ()
    """What its functions may be given of what they ask for by `network=`, as `network_targets` reads it."""
    erasing: str = ""
    """What confirms its erasure, which is planned; "": it is not."""
    erased_at: float = 0.0
    """When it was erased, or that was begun; 0: it was not. The record stays, so that nobody takes the name."""
    gone: dict[str, int] = {}
    """By kind, how many records that erasure has deleted."""
    erasure_open: bool = False
    """Whether its erasure was begun and is not over: it goes on, or has to be asked for again."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An API key. Only the digest of its secret is stored. Key: `key.{id}`."""

    id: str
    tenant: str
    sha256: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None = None
    label: str = ""
    revoked: bool = False
    revoked_at: float = 0.0
    """0: it was not, or by a version that did not note it."""
    replaced_by: str = ""
    """The id of the key that replaced it in a rotation."""
    certificate: str = ""
    """The holder of client certificates that stand for it, which has no secret then."""
    issued_from: float = 0.0
    """When the holder's mapping was last revoked: certificates from before stay worthless when it is mapped again."""
    break_glass: bool = False
    """Whether it is for the day on which nobody can log in: each request with it is written down."""


class LimitsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's limits for one tenant. Key: `limits.{tenant}`."""

    tenant: str
    limits: Limits = NO_LIMITS
    """Over its tier's."""
    functions: dict[str, Limits] = {}
    """By the owner's full name of the function, `tenant:app.function`."""
    begun: dict[str, RateLimitStart] = {}
    """By the same, "" for all calls of the tenant. Entries stay when a limit is removed, so that setting it again gives
    nobody a full burst."""


class FunctionShareRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The tenants that may call an app's functions. Key: `share.{tenant}.{app}`; independent of deploys."""

    tenant: str
    app: str
    grants: dict[str, tuple[str, ...]] = {}
    """tenant (or `*`, everybody) -> its functions; empty means all functions of the app."""

    def opens(self, function: str, tenant: str) -> bool:
        """Whether the tenant may call the function."""
        return self.names(function, tenant) or self.names(function, EVERYBODY)

    def names(self, function: str, grantee: str) -> bool:
        """Whether the function is shared with exactly this grantee."""
        functions = self.grants.get(grantee)
        return functions is not None and (not functions or function in functions)
