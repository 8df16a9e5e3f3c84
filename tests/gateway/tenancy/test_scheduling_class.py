"""What homes know of a tenant at one function."""

from __future__ import annotations

import pytest

from pilotlight_core.model.limits import Limits
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.tenancy.scheduling_class import PLAIN, SchedulingClass, scheduling_class_of


def test_a_tenants_tier_and_limits_make_its_scheduling_class() -> None:
    """Its weight is its own times its tier's; where nothing is limited, the home's bounds hold."""
    registry = MemoryRegistry()
    registry.tenant_records["big"] = TenantRecord(name="big", created_at=0.0, tier="enterprise", weight=2.0)
    registry.tenant_records["small"] = TenantRecord(name="small", created_at=0.0, tier="free")
    registry.limit_records["small"] = LimitsRecord(
        tenant="small", functions={"acme:app.fn": Limits(queue_calls=7, queue_seconds=0.5)}
    )
    enterprise, free = registry.tier_of("big"), registry.tier_of("small")

    big = scheduling_class_of(registry, "big", "acme:app.fn")
    assert (big.weight, big.tier_rank, big.reserved) == (2 * enterprise.weight, 2, enterprise.reserved_share)
    assert (big.queue_calls, big.queue_ms) == (0, 0.0)

    small = scheduling_class_of(registry, "small", "acme:app.fn")
    assert (small.weight, small.tier_rank) == (free.weight, 0)
    assert (small.queue_calls, small.queue_ms) == (7, 500.0)
    assert scheduling_class_of(registry, "small", "acme:app.other").queue_calls == free.limits.queue_calls


@pytest.mark.parametrize("asked", list(Priority))
def test_a_class_above_the_ceiling_is_lowered_to_it(asked: Priority) -> None:
    """A lower one stays what it is."""
    scheduling = SchedulingClass(ceiling=Priority.STANDARD)
    assert scheduling.lowered(asked) is (Priority.STANDARD if asked is Priority.INTERACTIVE else asked)
    assert PLAIN.lowered(asked) is asked
