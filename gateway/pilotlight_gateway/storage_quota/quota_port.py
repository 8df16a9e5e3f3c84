"""The port of the records of storage quotas."""

from __future__ import annotations

from typing import Protocol

from pilotlight_gateway.storage_quota.quota_shares import QuotaUsage


class QuotaRecords(Protocol):
    """One record per tenant, with compare-and-set. `key` is from `quota_key`. Every method raises BusError."""

    async def read_share(self, key: str) -> tuple[QuotaUsage, int] | None:
        """The tenant's usage and its record's revision; None without a record."""
        ...

    async def write_share(self, key: str, taken: QuotaUsage, revision: int, ttl: float) -> None:
        """Replace the record that has `revision` (0: none), for `ttl` seconds.

        Raises:
            KeyConflict: the record has another revision.
            Unavailable: `overloaded`, the bucket is full.
        """
        ...
