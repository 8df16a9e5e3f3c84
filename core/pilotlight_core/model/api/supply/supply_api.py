"""Bodies about the supply chain: policies, keys by which tenants sign, and the platform's own."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.supply.key_terms import REASON_LENGTH
from pilotlight_core.model.supply.policies import Policy
from pilotlight_core.model.supply.trust_records import PEM_LENGTH

Instant = Annotated[float, Meta(ge=0.0, le=253_402_300_799.0)]
"""Unix seconds; 0: none."""
MOST_RESIGNED = 200


class PolicyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A policy on record; revision 0: there is none, and nothing is looked for."""

    policy: Policy
    revision: int = 0
    changed_at: float = 0.0
    changed_by: str = ""


class TrustedKeyRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/trusted-keys/{name}`."""

    pem: Annotated[str, Meta(max_length=PEM_LENGTH)]
    """A public key of the curve P-256."""
    not_before: Instant = 0.0
    not_after: Instant = 0.0


class RevokeRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/trusted-keys/{name}/revoke`."""

    reason: Annotated[str, Meta(max_length=REASON_LENGTH)] = ""


class TrustedKeyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A key on record."""

    name: str
    id: str
    pem: str
    added_at: float
    added_by: str
    not_before: float
    not_after: float
    revoked_at: float
    reason: str
    counts: bool
    """Whether what it signs counts now."""
    why: str
    """Why it does not, as the rest of a sentence."""


class TrustedKeyList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/trusted-keys`."""

    keys: tuple[TrustedKeyInfo, ...]


class SigningKeyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One of the platform's keys."""

    id: str
    not_before: float = 0.0
    not_after: float = 0.0
    revoked_at: float = 0.0
    reason: str = ""
    counts: bool = True
    why: str = ""
    signs_here: bool = False
    """Whether it is the one with which this gateway signs now."""


class SigningKeysInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The platform's set of keys; serial 0: there is none, and one key for all."""

    serial: int
    operator: str
    """The id of the key that vouches for the set."""
    keys: tuple[SigningKeyInfo, ...]


class ResignRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/signing-keys/resign`: go on behind the version `after`."""

    after: Annotated[str, Meta(max_length=64)] = ""
    most: Annotated[int, Meta(ge=1, le=MOST_RESIGNED)] = 100


class RefusedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version that was not signed again."""

    version: str
    tenant: str
    ref: str
    why: str


class ResignedVersions(msgspec.Struct, frozen=True, kw_only=True):
    """What was done of one request."""

    looked_at: int
    signed: int
    refused: tuple[RefusedVersion, ...]
    next: str
    """Where to go on; "": that was all."""


class VerdictInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What policies say of a version."""

    version: str
    version_id: str
    at: float
    allowed: bool
    """Whether it could be deployed now."""
    findings: tuple[dict[str, Any], ...]
    more: int
    data_published_at: float | None
    """Of what is known of vulnerabilities; None: nothing is."""
    data_age_s: float | None
    policies: dict[str, int]
    warnings: tuple[str, ...] = ()
