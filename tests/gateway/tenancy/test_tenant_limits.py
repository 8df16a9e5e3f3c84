"""When a scope was first limited is remembered for good, so that nobody gets a full burst twice."""

from __future__ import annotations

import pytest

from pilotlight_core.model.limits import LONG_AGO, NO_LIMITS, Limits, RateLimitStart
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.tenancy.tenant_limits import BEGUN_AT_MOST, begun_by, set_limits

BOTH = Limits(requests_per_s=1.0, cost_per_s=1.0)
REQUESTS = Limits(requests_per_s=1.0)


@pytest.mark.parametrize(
    ("known", "before", "limits", "home", "expected"),
    [
        (RateLimitStart(), NO_LIMITS, BOTH, 7, RateLimitStart(requests=7, cost=7)),
        (RateLimitStart(), NO_LIMITS, REQUESTS, 7, RateLimitStart(requests=7)),
        (RateLimitStart(), NO_LIMITS, REQUESTS, 0, RateLimitStart(requests=LONG_AGO)),
        (RateLimitStart(), REQUESTS, BOTH, 7, RateLimitStart(requests=LONG_AGO, cost=7)),
        (RateLimitStart(), REQUESTS, NO_LIMITS, 7, RateLimitStart(requests=LONG_AGO)),
        (RateLimitStart(requests=3), NO_LIMITS, BOTH, 7, RateLimitStart(requests=3, cost=7)),
        (RateLimitStart(requests=LONG_AGO), NO_LIMITS, REQUESTS, 7, RateLimitStart(requests=LONG_AGO)),
    ],
)
def test_only_what_was_never_limited_is_new(
    known: RateLimitStart, before: Limits, limits: Limits, home: int, expected: RateLimitStart
) -> None:
    """What is set anew after it was removed is as old as it was."""
    record = LimitsRecord(tenant="acme", begun={"f": known})

    assert begun_by(record, "f", [before], limits, home)["f"] == expected


def test_what_limits_nothing_is_not_remembered() -> None:
    """A bound on bodies, or the removal of what was never set."""
    assert begun_by(LimitsRecord(tenant="acme"), "f", [NO_LIMITS], Limits(payload_bytes=9), 7) == {}


def test_it_is_remembered_of_so_many_scopes() -> None:
    """Others are as old as can be."""
    full = LimitsRecord(
        tenant="acme", begun={f"f{number}": RateLimitStart(requests=3) for number in range(BEGUN_AT_MOST)}
    )

    assert begun_by(full, "f", [NO_LIMITS], BOTH, 7) == full.begun
    assert begun_by(full, "f0", [NO_LIMITS], BOTH, 7)["f0"] == RateLimitStart(requests=3, cost=LONG_AGO)


@pytest.mark.parametrize(
    ("tier", "moved", "expected"),
    [("enterprise", False, 7), ("paid", False, LONG_AGO), ("enterprise", True, LONG_AGO)],
)
async def test_a_tiers_limits_were_there_before(tier: str, moved: bool, expected: int) -> None:
    """Of its own tier, or of any that it may have been in."""
    registry = MemoryRegistry()
    registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=0.0, tier=tier, moved=moved)

    await set_limits(registry, "acme", REQUESTS, home=7)

    assert registry.limit_records["acme"].begun[""].requests == expected


async def test_a_tenant_is_as_new_as_what_limits_it() -> None:
    """Nobody can have counted for it before there was it, whatever its tier allows."""
    registry = MemoryRegistry()
    registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=0.0, tier="free", home=9)

    await set_limits(registry, "acme", REQUESTS, "acme:a.b", home=7)

    effective = registry.limits("acme", "acme:a.b")
    assert effective.tenant_begun == effective.function_begun == RateLimitStart(requests=9, cost=9, tokens=9)
