"""How many bytes the gateway may hold at a time, of all tenants and of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pilotlight_core.model.errors import Unavailable

TENANTS_TO_FILL = 2
"""One tenant alone cannot fill the budget; a smaller share would leave more of it unused."""


@dataclass(kw_only=True)
class ByteBudget:
    """Counts bytes by the tenant whose call they belong to. The taker of bytes gives them back."""

    limit: int
    used: int = 0
    _by_tenant: dict[str, int] = field(default_factory=dict)
    """Without those that hold nothing."""

    @property
    def share(self) -> int:
        """The most that one tenant may hold."""
        return self.limit // TENANTS_TO_FILL

    def take(self, size: int, tenant: str) -> None:
        """Count `size` bytes.

        Raises:
            Unavailable: `overloaded`, if that is more than the tenant's share or the whole budget has room for.
        """
        held = self._by_tenant.get(tenant, 0)
        if held + size > self.share:
            raise _overloaded(f"tenant {tenant} already holds {held} bytes here, of a share of {self.share}.")
        if self.used + size > self.limit:
            raise _overloaded(f"this gateway already holds {self.used} of {self.limit} bytes.")
        self.used += size
        if size:
            self._by_tenant[tenant] = held + size

    def give_back(self, size: int, tenant: str) -> None:
        if not size:
            return
        self.used -= size
        left = self._by_tenant.get(tenant, 0) - size
        if left:
            self._by_tenant[tenant] = left
        else:
            del self._by_tenant[tenant]

    @contextmanager
    def holding(self, size: int, tenant: str) -> Iterator[None]:
        """Count `size` bytes until the block ends; raises as `take`."""
        self.take(size, tenant)
        try:
            yield
        finally:
            self.give_back(size, tenant)

    def check_integrity(self) -> None:
        """Raises AssertionError if what was given back is not what was taken."""
        sound = all(0 < held <= self.share for held in self._by_tenant.values())
        if not sound or not 0 <= self.used <= self.limit or self.used != sum(self._by_tenant.values()):
            raise AssertionError(f"byte budget is at {self.used} of {self.limit}: {self._by_tenant}")


def _overloaded(detail: str) -> Unavailable:
    return Unavailable(detail, code="overloaded", retry_after=1.0)
