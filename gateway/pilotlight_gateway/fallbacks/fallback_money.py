"""Whether the money that was reserved for a call is enough for the one that takes its place: it is not asked again."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.limits.limit_policy import LimitPolicy


class FallbackMoney:
    """By what a tenant's calls of a function must pass, and by prices."""

    def __init__(self, policy_of: Callable[[str, str], LimitPolicy], prices: CallPrices) -> None:
        """`policy_of` gets the tenant, and the function as `tenant:app.function`."""
        self._policy_of = policy_of
        self._prices = prices

    def covers(self, call: PreparedCall, version: VersionRecord) -> bool:
        """Whether each budget that would hold for `version` holds for the call, with as much for it at least."""
        function = f"{version.tenant}:{version.app}.{version.function}"
        held, other = (self._policy_of(call.tenant, name).budgets for name in (call.function, function))
        if any(budget not in held for budget in other):
            return False
        return not held or self._worst(call, version) <= self._worst(call, call.version)

    def _worst(self, call: PreparedCall, version: VersionRecord) -> int:
        within_s = call.deadline_at - call.arrived_at
        most_s = self._prices.longest_s(version, within_s)
        return self._prices.worst_of(version, most_s, call.tenant, within_s=within_s)
