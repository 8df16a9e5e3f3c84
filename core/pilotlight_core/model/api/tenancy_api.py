"""The bodies of the HTTP API about tenants, tiers, limits, keys and shared functions."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Life, Request
from pilotlight_core.model.ids import NAME_PATTERN
from pilotlight_core.model.limits import NO_LIMITS, CapacityShare, Limits, Rank, TenantWeight
from pilotlight_core.model.networks.network_targets import LONGEST_TARGET, MOST_ALLOWED
from pilotlight_core.model.spec import Priority

STRANGERS_TIER = "free"
"""The default tier of a new tenant."""
DAY_S = 86_400.0
LONGEST_OVERLAP_S = 90 * DAY_S
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
NetworkText = Annotated[str, Meta(max_length=LONGEST_TARGET)]


class TenantRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/tenants`."""

    name: Name
    tier: Name = STRANGERS_TIER
    weight: TenantWeight = 1.0


class TenantChange(Request, frozen=True, kw_only=True):
    """`PATCH /v1/tenants/{tenant}`: missing fields stay as they are."""

    tier: Name | None = None
    weight: TenantWeight | None = None
    disabled: bool | None = None
    network: Annotated[tuple[NetworkText, ...], Meta(max_length=MOST_ALLOWED)] | None = None
    """All that its functions may connect to, if they ask for it by `network=`."""


class TenantInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant. `weight` counts among tenants of its tier."""

    name: str
    tier: str
    weight: float
    created_at: float
    disabled: bool
    network: tuple[str, ...] = ()
    """What its functions may connect to, if they ask for it by `network=`."""
    erased_at: float = 0.0
    """When it was erased, or that was begun; 0: it was not."""
    erasure_open: bool = False
    """Whether something of it may be left: its erasure goes on, or has to be asked for again."""


class LimitsInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/tenants/{tenant}/limits`."""

    tenant: str
    tier: str
    limits: Limits
    """Set for the tenant."""
    functions: dict[str, Limits]
    """Set for the tenant's calls to single functions, by `owner:app.function`."""
    effective: Limits
    """Over all its calls: its own limits over its tier's."""


class FunctionLimitsInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/tenants/{tenant}/limits/{function}`."""

    tenant: str
    function: str
    """`owner:app.function`."""
    limits: Limits
    """Set for this function."""
    effective: Limits
    """Applied to it beside the limits on all calls of the tenant."""


class TierRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/tiers/{tier}`: the whole tier."""

    rank: Rank = 0
    weight: TenantWeight = 1.0
    priority_ceiling: Priority = Priority.INTERACTIVE
    reserved_share: CapacityShare = 0.0
    limits: Limits = NO_LIMITS


class TierInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A tier as it applies now."""

    name: str
    rank: int
    weight: float
    priority_ceiling: Priority
    reserved_share: float
    limits: Limits
    source: str
    """"configuration", or "registry" if the operator has overridden it."""


class RotateRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/keys/{id}/rotate`."""

    overlap_s: Annotated[float, Meta(ge=0, le=LONGEST_OVERLAP_S)] = DAY_S
    """How long the old key stays valid beside the new one; 0: not at all."""
    expires_in_s: Life | None = None
    """The new key's life; default: that of the old one."""


class FunctionShareRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/apps/{app}/shares/{grantee}`; no functions: all of the app, also later ones."""

    functions: tuple[Name, ...] = ()


class FunctionShareInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The functions of an app that one tenant may call; none means all."""

    grantee: str
    """A tenant, or "*": everybody."""
    functions: tuple[str, ...]


class SharedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function of another tenant that the caller may call: `ref` is `owner:app.function`."""

    ref: str
    owner: str
    app: str
    function: str
    endpoint: str
    """Path of its calls."""


class SharedFunctions(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/shared`, by ref. `next` is the cursor of the next page; null: there is none."""

    shared: tuple[SharedFunction, ...]
    next: str | None = None
