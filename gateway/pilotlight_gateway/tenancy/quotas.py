"""The refusal of what would make a tenant keep more than it may."""

from __future__ import annotations

from pilotlight_core.model.errors import QuotaExceeded
from pilotlight_core.model.limits import ReachedLimit


def check_quota(tenant: str, limit: str, allowed: int | None, wanted: int, what: str, how: str) -> None:
    """Refuse `wanted` of a thing beyond `allowed` (None: it is not limited).

    `limit` is a field of `Limits`; `what` is the thing in the plural, and `how` says how to make room.

    Raises:
        QuotaExceeded: names the limit, what is allowed, and what was wanted.
    """
    if allowed is None or wanted <= allowed:
        return
    raise QuotaExceeded(
        f"{tenant} may have {allowed} {what} (the limit {limit}), and this would make {wanted}: {how}.",
        limits=(ReachedLimit(limit=limit, tenant=tenant, allowed=allowed, current=wanted),),
    )
