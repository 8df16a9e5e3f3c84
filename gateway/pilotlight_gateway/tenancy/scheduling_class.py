"""What a tenant's tier and limits mean to the scheduler: carried by every call to the home of its function."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.spec import Priority
from pilotlight_gateway.tenancy.registry_port import LimitRegistry

ORDER = tuple(Priority)
"""The highest first."""


class SchedulingClass(msgspec.Struct, frozen=True, kw_only=True):
    """How a tenant's calls to one function stand beside those of others; the fields are `CallDescriptor`'s."""

    weight: float = 1.0
    tier_rank: int = 0
    reserved: float = 0.0
    queue_calls: int = 0
    queue_ms: float = 0.0
    ceiling: Priority = Priority.INTERACTIVE
    """The highest class that its calls may have."""

    def lowered(self, priority: Priority) -> Priority:
        """The class that a call gets that asks for `priority`."""
        if self.ceiling is ORDER[0]:
            return priority
        return max(priority, self.ceiling, key=ORDER.index)


PLAIN = SchedulingClass()


def scheduling_class_of(registry: LimitRegistry, tenant: str, function: str) -> SchedulingClass:
    """The standing of a tenant at `function` (`tenant:app.function` of its owner), from the registry's mirror."""
    tier = registry.tier_of(tenant)
    limits = registry.limits(tenant, function).function
    return SchedulingClass(
        weight=registry.weight_of(tenant),
        tier_rank=tier.rank,
        reserved=tier.reserved_share,
        queue_calls=limits.queue_calls or 0,
        queue_ms=(limits.queue_seconds or 0.0) * 1000.0,
        ceiling=tier.priority_ceiling,
    )
