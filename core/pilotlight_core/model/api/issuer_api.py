"""The bodies of the HTTP API about issuers of tokens, about logging in, and about who one is."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import LINE_PATTERN, Request, Scope
from pilotlight_core.model.ids import END, NAME

USUAL_ALGORITHMS = ("RS256", "ES256", "EdDSA", "Ed25519")
LEEWAY_S = 30.0
STALE_OK_S = 86_400.0
ISSUER_NAME_PATTERN = f"^[a-z0-9][a-z0-9-]{{0,31}}{END}"
IssuerUrl = Annotated[str, Meta(min_length=8, max_length=512, pattern=f"^[!-~]+{END}")]
Line = Annotated[str, Meta(max_length=256, pattern=LINE_PATTERN)]
ClaimPath = Annotated[str, Meta(max_length=128, pattern=LINE_PATTERN)]
MappedTenant = Annotated[str, Meta(pattern=f"^([*]|{NAME.pattern}){END}")]


class IssuerRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/issuers/{issuer}`: the whole record."""

    url: IssuerUrl
    audience: Annotated[str, Meta(min_length=1, max_length=256, pattern=LINE_PATTERN)]
    client_id: Line = ""
    jwks_url: Annotated[str, Meta(max_length=512, pattern=f"^[!-~]*{END}")] = ""
    """"": where the issuer's own document says now."""
    algorithms: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=11)] = USUAL_ALGORITHMS
    tenant: Annotated[str, Meta(pattern=f"^({NAME.pattern})?{END}")] = ""
    tenant_claim: ClaimPath = ""
    tenants: Annotated[dict[Line, MappedTenant], Meta(max_length=1_000)] = msgspec.field(default_factory=dict)
    groups_claim: ClaimPath = "groups"
    groups: Annotated[dict[Line, tuple[Scope, ...]], Meta(max_length=1_000)] = msgspec.field(default_factory=dict)
    leeway_s: Annotated[float, Meta(ge=0, le=300)] = LEEWAY_S
    stale_ok_s: Annotated[float, Meta(ge=600, le=7 * 86_400)] = STALE_OK_S
    login_scope: Line = "openid offline_access"
    login_parameters: Annotated[dict[Line, Line], Meta(max_length=10)] = msgspec.field(default_factory=dict)


class IssuerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An issuer on record, and how this gateway stands with its keys."""

    name: str
    url: str
    audience: str
    client_id: str
    jwks_url: str
    algorithms: tuple[str, ...]
    tenant: str
    tenant_claim: str
    tenants: dict[str, str]
    groups_claim: str
    groups: dict[str, tuple[str, ...]]
    leeway_s: float
    stale_ok_s: float
    login_scope: str
    login_parameters: dict[str, str]
    changed_at: float
    keys: int = 0
    """How many of its keys this gateway has."""
    keys_age_s: float | None = None
    """When it fetched them; null: not yet."""
    problem: str = ""
    """Why the last attempt to fetch them failed; "": it did not."""


class LoginInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a program needs to know to log its user in at one issuer. None of it is secret."""

    name: str
    url: str
    client_id: str
    scope: str
    parameters: dict[str, str] = {}
    id_tokens: bool = False
    """Whether the platform takes the id token, and not the access token."""


class CallerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/whoami`: what the platform takes the caller for."""

    tenant: str
    key: str
    """The id of the key, or of who is logged in, as in the audit log and in usage."""
    scopes: tuple[str, ...]
    issuer: str = ""
    """Whose token it is; "": it is an API key."""
    subject: str = ""
    """Whom the issuer means."""
    expires_at: float | None = None
    break_glass: bool = False
