"""Which call takes the place of one that was refused for want of room: the same one, to its function's fallback.

A call is refused so before it has run anywhere: its deadline test fails or its queue is full (`queue_full`), or no
container would be there in time (`no_capacity`). It falls back once; jobs do not, since they wait. Where a hard budget
holds, its money was reserved already, so the fallback may cost no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from msgspec import UNSET

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.money.budgets import BudgetMode
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.spec import MethodSpec, VersionRecord
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.limits.limit_policy import PolicyOf
from pilotlight_gateway.schemas.like_methods import methods_fault
from pilotlight_gateway.tenancy.hook_versions import known_hooks
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import scheduling_class_of

REFUSALS = ("queue_full", "no_capacity")
"""Codes of calls that had no room."""
BILLED = "usage"
"""What the error of a call has that ran somewhere before."""


IsCovered = Callable[[PreparedCall, VersionRecord], bool]
"""Whether what was reserved of budgets for a call is enough for another version to run it."""


def covered_by(policy: PolicyOf, prices: CallPrices) -> IsCovered:
    """By the budgets that hold for a call, and the prices of now."""

    def is_covered(call: PreparedCall, version: VersionRecord) -> bool:
        budgets = policy(call.tenant, call.function).budgets
        its_own = policy(call.tenant, f"{version.tenant}:{version.app}.{version.function}").budgets
        if any(budget.mode is BudgetMode.HARD and budget not in budgets for budget in its_own):
            return False  # nothing is reserved of it
        if all(budget.mode is not BudgetMode.HARD for budget in budgets):
            return True
        return prices.covers(call.version, version, call.deadline_at - call.arrived_at, call.tenant)

    return is_covered


class Fallbacks:
    """Finds them in the registry's mirror. `clock`: monotonic seconds."""

    def __init__(
        self, registry: RegistryPort, clock: Callable[[], float], is_covered: IsCovered = lambda _call, _version: True
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._is_covered = is_covered
        self.counts: dict[str, int] = defaultdict(int)
        """By the code of the refusal: calls that fell back."""

    def instead_of(self, call: PreparedCall, error: PilotlightError) -> PreparedCall | None:
        """The call that runs in place of one that failed so; None: none does."""
        fallback = call.version.spec.fallback
        if fallback is UNSET or error.wire_code not in REFUSALS or BILLED in error.more:
            return None
        registry, tenant = self._registry, call.tenant
        if self._clock() >= call.deadline_at:
            return None
        if call.side is not None and call.side.arm is Arm.CANARY:
            return None  # the old version goes first
        if fallback.classes and call.priority not in fallback.classes:
            return None
        if fallback.tiers and registry.tier_of(tenant).name not in fallback.tiers:
            return None
        found = self._version(call.version, fallback.function)
        method = method_for(call, found) if found is not None else None
        if found is None or method is None or not self._is_covered(call, found):
            return None
        hooks = known_hooks(registry, found)
        if found.spec.pipeline is not UNSET and (hooks is None or call.hooks is None):
            # They are not known here yet; or what waits for this call has no room for the values of stages.
            return None
        self.counts[error.wire_code] += 1
        function = f"{found.tenant}:{found.app}.{found.function}"
        return call.instead(found, method, scheduling_class_of(registry, tenant, function), hooks)

    def _version(self, version: VersionRecord, function: str) -> VersionRecord | None:
        """The deployed version of a function of the same app."""
        app = self._registry.app_nowait(version.tenant, version.app)
        if app is None or app.stopped or function not in app.functions:
            return None
        return self._registry.version(app.functions[function])


def method_for(call: PreparedCall, version: VersionRecord) -> MethodSpec | None:
    """The method of a version that can run a call of another one; None: there is none.

    A deploy has held them to be alike, but the call may be of a version of before.
    """
    asked = call.method
    found = next((method for method in version.spec.methods if method.name == asked.name), None)
    if found is None or version.schemas_apart or methods_fault((asked,), (found,)):
        return None
    return found
