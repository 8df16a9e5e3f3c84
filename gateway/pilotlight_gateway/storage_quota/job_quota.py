"""What a tenant may store of jobs: records, inputs, results and errors, in the bucket and the blob store.

It is counted by when it will be forgotten (`quota_shares`), so nothing is counted off. A gateway that dies between
counting and storing has counted too much until then.

New jobs leave a part of the quota to the ends of jobs that are there. A result that does not fit goes to the blob
store: it is never refused, since its code has run. So results may take several times the quota, and keep new jobs out.
Beyond that no job of the tenant is started until something is forgotten.
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
"""Of it may be taken when a job is submitted."""
RESULTS_AT_MOST = 8.0
"""Times the room that results may take it to: many have small inputs and large results."""
ASKING_S = 1.0
ASK_AGAIN_S = 30.0
"""How long nothing is started of a tenant that has far too much, before it is asked again whether it has."""

log = structlog.get_logger(__name__)


class StorageCharge(NamedTuple):
    """What was counted: it can be given back."""

    tenant: str
    size: int
    slot: int


class JobStorageQuota:
    """As one gateway takes it for its tenants. `expires_at` is when what is stored is forgotten (unix seconds)."""

    def __init__(self, records: QuotaRecords, *, limit: int, life: float, wall: Callable[[], float]) -> None:
        self._quota = StorageQuota(records, limit=limit, life=life, wall=wall)
        self._wall = wall
        self._full: dict[str, float] = {}
        """tenant -> until when it is not asked whether there is room."""

    def spend(self, tenant: str, size: int, expires_at: float) -> StorageCharge | None:
        """Count new bytes out of what this gateway has taken already; None: `take` them."""
        slot = self._quota.spend(tenant, size, expires_at)
        return None if slot is None else StorageCharge(tenant, size, slot)

    async def take(self, tenant: str, size: int, expires_at: float) -> StorageCharge:
        """Count new bytes.

        Raises:
            TooMuch: the tenant has stored too much. BusError: its record cannot be read.
        """
        try:
            return StorageCharge(tenant, size, await self._quota.take(tenant, size, expires_at, part=NEW_AT_MOST))
        except TooMuch as error:
            raise TooMuch("The tenant's room for jobs is used up for now.", retry_after=error.retry_after) from None

    async def fit(self, tenant: str, size: int, expires_at: float) -> StorageCharge | None:
        """Count what is to be written into the record of a job that is there; None: there is no room for it."""
        try:
            return StorageCharge(tenant, size, await self._quota.take(tenant, size, expires_at))
        except (TooMuch, BusError):
            return None

    async def count(self, tenant: str, size: int, expires_at: float) -> StorageCharge:
        """Count a result that is kept as a blob, whether or not there is room."""
        slot, fits = await self._quota.count(tenant, size, expires_at, part=RESULTS_AT_MOST)
        if not fits:
            self._full.setdefault(tenant, self._wall())
        return StorageCharge(tenant, size, slot)

    def give_back(self, counted: StorageCharge) -> None:
        """It was not stored after all."""
        self._quota.give_back(*counted)

    async def pause(self, tenant: str) -> float:
        """Seconds for which no job of the tenant is to start; 0.0: it may."""
        asked_at = self._full.get(tenant)
        if asked_at is None:
            return 0.0
        at = self._wall()
        if at < asked_at:
            return asked_at - at
        self._full[tenant] = at + ASKING_S  # for those who come while it is asked
        with contextlib.suppress(BusError):
            if not await self._quota.is_full(tenant, part=RESULTS_AT_MOST):
                self._full.pop(tenant, None)
                return 0.0
            log.warning(
                "nothing is started of a tenant whose results take far more than its room for jobs", tenant=tenant
            )
            self._full[tenant] = at + ASK_AGAIN_S
        return self._full[tenant] - at
