"""A tenant's tier and limits at one function, as homes need them."""

from __future__ import annotations

import math

import msgspec

from pilotlight_core.model.spec import Priority
from pilotlight_gateway.tenancy.registry_port import LimitRegistry

ORDER = tuple(Priority)
"""The highest first."""


class SchedulingClass(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's tier and limits at one function, as its home needs them; the fields are `CallDescriptor`'s."""

    weight: float = 1.0
    tier_rank: int = 0
    reserved: float = 0.0
    queue_calls: int = 0
    queue_ms: float = 0.0
    ceiling: Priority = Priority.INTERACTIVE
    """The highest priority that its calls may have."""
    longest_s: float = math.inf
    """What one of its calls may take in all."""

    def lowered(self, priority: Priority) -> Priority:
        """`priority`, or the ceiling if that is lower."""
        if self.ceiling is ORDER[0]:
            return priority
        return max(priority, self.ceiling, key=ORDER.index)


PLAIN = SchedulingClass()


def scheduling_class_of(registry: LimitRegistry, tenant: str, function: str) -> SchedulingClass:
    """Of a tenant's calls to `function` (`tenant:app.function` of its owner)."""
    tier = registry.tier_of(tenant)
    limits = registry.limits(tenant, function).function
    return SchedulingClass(
        weight=registry.weight_of(tenant),
        tier_rank=tier.rank,
        reserved=tier.reserved_share,
        queue_calls=limits.queue_calls or 0,
        queue_ms=(limits.queue_seconds or 0.0) * 1000.0,
        ceiling=tier.priority_ceiling,
        longest_s=limits.timeout_s or math.inf,
    )
