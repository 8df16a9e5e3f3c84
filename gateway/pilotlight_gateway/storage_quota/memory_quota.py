"""An in-memory `QuotaRecords`."""

from __future__ import annotations

from dataclasses import dataclass, field

from pilotlight_core.bus import BusError, WrongRevision
from pilotlight_gateway.storage_quota.quota_shares import QuotaUsage


@dataclass(kw_only=True)
class MemoryQuotaRecords:
    """Records in a dictionary, which never expire."""

    error: BusError | None = None
    """Raised by every method."""
    writes: int = 0
    _kept: dict[str, tuple[QuotaUsage, int]] = field(default_factory=dict)

    async def read_share(self, key: str) -> tuple[QuotaUsage, int] | None:
        self._may_fail()
        return self._kept.get(key)

    async def write_share(self, key: str, taken: QuotaUsage, revision: int, ttl: float) -> None:  # noqa: ARG002
        self._may_fail()
        if self._kept.get(key, (None, 0))[1] != revision:
            raise WrongRevision(f"{key} was changed by somebody else.")
        self.writes += 1
        self._kept[key] = taken, revision + 1

    def _may_fail(self) -> None:
        if self.error is not None:
            raise self.error
