"""What the audit log says of one change."""

from __future__ import annotations

from typing import Any

import msgspec

UNKNOWN = 0
"""The status of a change whose end was never written: it may have been made or not."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A change, or an attempt: who asked for what, and what came of it."""

    id: str
    """Of the request that asked for it, as in its answer's `X-Request-Id`."""
    at: float
    """When it began, in unix seconds."""
    tenant: str
    """Whose things it is about."""
    by: str
    """The tenant whose key asked for it."""
    key: str
    """The key's id."""
    subject: str = ""
    """Whom an issuer means by whoever asked; "": it was asked for with a key."""
    break_glass: bool = False
    """Whether it was asked for with the key for days on which nobody can log in."""
    address: str = ""
    """From which it was asked for."""
    operation: str
    """As the HTTP API calls it, such as `setLimits`."""
    target: dict[str, str] = {}
    """What the path names: the tenant, app, key, price."""
    told: dict[str, Any] = {}
    """What the body says, without what may be secret."""
    status: int = UNKNOWN
    """Of the answer. `UNKNOWN`: the gateway ended before it was written."""
    code: str = ""
    """Of the error; empty: it was done."""


class AuditList(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /v1/audit`."""

    entries: list[AuditEntry]
    """The oldest first."""
    more: bool = False
    """Whether there are older ones in the time that was asked for."""
