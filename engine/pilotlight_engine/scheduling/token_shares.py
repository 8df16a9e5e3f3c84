"""Fairness between tenants in tokens: a virtual counter for each, which advances by its tokens over its weight.

Whoever is behind goes first (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024). A tenant that comes
back is not behind by all that it did not use, only by `burst`: it gets that much at once, and its share from there.
Counters of the absent are kept, so that leaving forgives nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

MAX_ABSENT = 4096
"""How many absent tenants are remembered; of more, those that left first start anew."""


class TokenShares:
    """The counters. Tenants that have a sequence are present."""

    def __init__(self, burst: float) -> None:
        self.burst = burst
        self._present: dict[str, float] = {}
        self._absent: OrderedDict[str, float] = OrderedDict()
        self._floor = 0.0
        """The least counter of those present, or the greatest of those that were, when the last of them left."""

    def join(self, tenant: str) -> None:
        """A tenant has a sequence."""
        if tenant in self._present:
            return
        floor = min(self._present.values(), default=self._floor)
        self._present[tenant] = max(self._absent.pop(tenant, 0.0), floor - self.burst)

    def leave(self, tenant: str) -> None:
        """A tenant has no sequence any more."""
        counter = self._present.pop(tenant)
        if not self._present:
            self._floor = max(self._floor, counter)
        self._absent[tenant] = counter
        if len(self._absent) > MAX_ABSENT:
            self._absent.popitem(last=False)

    def charge(self, tenant: str, tokens: int, weight: float) -> None:
        """Tokens were computed for a tenant."""
        self._present[tenant] += tokens / weight

    def in_order(self, tenants: Iterable[str]) -> list[str]:
        """`tenants`, all present, whoever is furthest behind first."""
        return sorted(tenants, key=lambda tenant: (self._present[tenant], tenant))
