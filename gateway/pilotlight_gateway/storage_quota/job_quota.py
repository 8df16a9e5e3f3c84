"""The storage quota of jobs: records, inputs, results and errors, in the bucket and the blob store.

Bytes count until they expire (`quota_shares`), even if a gateway stops before it stores them.

New jobs leave a part of the quota to the results of existing ones. A result that does not fit goes to the blob store:
it is never refused, since its code has run. So results may exceed the quota and keep new jobs out; beyond
RESULTS_AT_MOST no job of the tenant starts until bytes expire.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import structlog

from pilotlight_core.bus import BusError
from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.storage_quota.quota_lease import StorageQuota
from pilotlight_gateway.storage_quota.quota_port import QuotaRecords

NEW_AT_MOST = 0.9
"""The part of the quota that new jobs may fill."""
RESULTS_AT_MOST = 8.0
"""Multiples of the quota that results may take: small inputs often have large results."""
ASKING_S = 1.0
ASK_AGAIN_S = 30.0
"""Seconds until the usage of a tenant beyond RESULTS_AT_MOST is read again."""

log = structlog.get_logger(__name__)


class StorageCharge(NamedTuple):
    """Counted bytes, which can be given back."""

    tenant: str
    size: int
    slot: int


class JobStorageQuota:
    """One gateway's quota of jobs. `expires_at` is the unix second at which stored bytes expire."""

    def __init__(self, records: QuotaRecords, *, limit: int, life: float, wall: Callable[[], float]) -> None:
        self._quota = StorageQuota(records, limit=limit, life=life, wall=wall)
        self._wall = wall
        self._full: dict[str, float] = {}
        """By tenant, the unix second of the next read of its usage."""

    def spend(self, tenant: str, size: int, expires_at: float) -> StorageCharge | None:
        """Count new bytes within this gateway's blocks; None if they do not suffice, see `take`."""
        slot = self._quota.spend(tenant, size, expires_at)
        return None if slot is None else StorageCharge(tenant, size, slot)

    async def take(self, tenant: str, size: int, expires_at: float) -> StorageCharge:
        """Count new bytes.

        Raises:
            TooMuch: the tenant's quota is used up.
            BusError: its record cannot be read.
        """
        try:
            return StorageCharge(tenant, size, await self._quota.take(tenant, size, expires_at, part=NEW_AT_MOST))
        except TooMuch as error:
            raise TooMuch("The tenant's room for jobs is used up for now.", retry_after=error.retry_after) from None

    async def fit(self, tenant: str, size: int, expires_at: float) -> StorageCharge | None:
        """Count bytes for the record of an existing job; None if they do not fit."""
        try:
            return StorageCharge(tenant, size, await self._quota.take(tenant, size, expires_at))
        except (TooMuch, BusError):
            return None

    async def count(self, tenant: str, size: int, expires_at: float) -> StorageCharge:
        """Count a result in the blob store, even if it does not fit."""
        slot, fits = await self._quota.count(tenant, size, expires_at, part=RESULTS_AT_MOST)
        if not fits:
            self._full.setdefault(tenant, self._wall())
        return StorageCharge(tenant, size, slot)

    def give_back(self, counted: StorageCharge) -> None:
        """Return the charge of bytes that were not stored."""
        self._quota.give_back(*counted)

    async def pause(self, tenant: str) -> float:
        """Seconds for which no job of the tenant may start."""
        asked_at = self._full.get(tenant)
        if asked_at is None:
            return 0.0
        at = self._wall()
        if at < asked_at:
            return asked_at - at
        self._full[tenant] = at + ASKING_S  # for callers during the read
        with contextlib.suppress(BusError):
            if not await self._quota.is_full(tenant, part=RESULTS_AT_MOST):
                self._full.pop(tenant, None)
                return 0.0
            log.warning(
                "nothing is started of a tenant whose results take far more than its room for jobs", tenant=tenant
            )
            self._full[tenant] = at + ASK_AGAIN_S
        return self._full[tenant] - at
