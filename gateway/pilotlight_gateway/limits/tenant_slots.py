"""A bound on what runs at a time in one gateway, of which no tenants can hold all. What is more is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pilotlight_core.model.errors import TooMuch


class TenantSlots:
    """At most `limit` slots, `of_tenant` of one tenant.

    Half of them are for tenants that hold none: only while half are free does a tenant get another one. `what` and
    `retry_after` (seconds) are for the refusal.
    """

    def __init__(self, limit: int, what: str, *, of_tenant: int, retry_after: float) -> None:
        self._limit = limit
        self._of_tenant = of_tenant
        self._what = what
        self._retry_after = retry_after
        self._held: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        return self._held.total()

    @contextmanager
    def slot(self, tenant: str) -> Iterator[None]:
        """Hold a slot until the block ends.

        Raises:
            TooMuch: the tenant has as many as it may, or all are taken.
        """
        held, taken = self._held[tenant], self.taken
        if held >= self._of_tenant:
            raise TooMuch(f"{held} {self._what} of {tenant} already.", retry_after=self._retry_after)
        if taken >= (self._limit // 2 if held else self._limit):
            raise TooMuch(f"{taken} {self._what} already.", retry_after=self._retry_after)
        self._held[tenant] += 1
        try:
            yield
        finally:
            self._held[tenant] -= 1
            if not self._held[tenant]:
                del self._held[tenant]


def upload_slots() -> TenantSlots:
    """Uploads of blobs at a time; a deploy makes four."""
    return TenantSlots(32, "uploads are under way", of_tenant=8, retry_after=1.0)


def deploy_slots() -> TenantSlots:
    """Deploys at a time."""
    return TenantSlots(3, "deploys are under way", of_tenant=1, retry_after=1.0)


def file_slots() -> TenantSlots:
    """Uploads of files at a time."""
    return TenantSlots(8, "files are being uploaded", of_tenant=2, retry_after=2.0)


def lock_slots() -> TenantSlots:
    """Locks of requirements at a time."""
    return TenantSlots(16, "deploys with requirements are under way", of_tenant=1, retry_after=2.0)


def follower_slots() -> TenantSlots:
    """Readers of logs at a time."""
    return TenantSlots(256, "log readers are connected", of_tenant=64, retry_after=5.0)
