"""How many calls are kept for one tenant: a caller's wish is one, and a flood of failures says the same again."""

from __future__ import annotations

from collections import OrderedDict

ASKED_PER_S = 10.0
"""Calls of a tenant that are traced since its traceparents say so."""
FAILED_PER_S = 50.0
"""Failed and slow calls of a tenant that are kept."""
MOST_TENANTS = 4_096


class KeepRate:
    """A bucket for each tenant: `per_s` a second, and ten seconds' worth at once. `at`: monotonic seconds."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._most = 10.0 * per_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tenant -> what is left, and as of when."""

    def takes(self, tenant: str, at: float) -> bool:
        """Whether one more is kept for a tenant; it counts then."""
        left, since = self._left.pop(tenant, (self._most, at))
        left = min(self._most, left + max(0.0, at - since) * self._per_s)
        taken = left >= 1.0
        self._left[tenant] = (left - 1.0 if taken else left, at)
        if len(self._left) > MOST_TENANTS:
            self._left.popitem(last=False)
        return taken
