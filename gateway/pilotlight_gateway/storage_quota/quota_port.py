"""Where it is written what tenants have taken of their storage quotas.

`bus_quota.BusQuotaRecords` is the real one, `memory_quota.MemoryQuotaRecords` the one in memory.
"""

from __future__ import annotations

from typing import Protocol

from pilotlight_gateway.storage_quota.quota_shares import QuotaUsage


class QuotaRecords(Protocol):
    """A record per tenant with compare-and-set. `key` is what `quota_key` makes. Both verbs raise BusError."""

    async def read_share(self, key: str) -> tuple[QuotaUsage, int] | None:
        """What the tenant has taken, and the revision that wrote it; None if nothing was ever written."""
        ...

    async def write_share(self, key: str, taken: QuotaUsage, revision: int, ttl: float) -> None:
        """Replace what has `revision` (0: nothing), for `ttl` seconds.

        Raises:
            KeyConflict: the record has another revision.
            Unavailable: `overloaded`, the bucket is full.
        """
        ...
