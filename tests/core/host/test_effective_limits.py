"""What a tenant is allowed follows the records at once, and costs a look-up."""

from __future__ import annotations

from typing import Any

from pilotlight_core.host.effective_limits import KEPT_AT_MOST, Allowances
from pilotlight_core.model.limits import Limits, Tier, load_tiers
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord

FUNCTION = "acme:shop.hello"


def allowances(records: dict[str, Any] | None = None) -> Allowances:
    return Allowances({} if records is None else records, load_tiers())


def test_a_change_of_any_layer_is_seen_at_once() -> None:
    """The tenant's tier, its limits, those of one function, and the tier itself."""
    records: dict[str, Any] = {"tenant.acme": TenantRecord(name="acme", created_at=0.0, tier="free")}
    allowed = allowances(records)
    assert allowed.limits("acme", FUNCTION).tenant.concurrency == 10

    def put(key: str, record: Any) -> None:
        records[key] = record
        allowed.changed(key)

    put("tenant.acme", TenantRecord(name="acme", created_at=0.0, tier="enterprise"))
    assert allowed.limits("acme", FUNCTION).tenant.concurrency is None
    put("tier.enterprise", Tier(name="enterprise", limits=Limits(concurrency=7)))
    assert allowed.limits("acme", FUNCTION).tenant.concurrency == 7
    put(
        "limits.acme",
        LimitsRecord(tenant="acme", limits=Limits(concurrency=5), functions={FUNCTION: Limits(burst=2.0)}),
    )
    assert allowed.limits("acme", FUNCTION).tenant.concurrency == 5
    assert allowed.limits("acme", FUNCTION).function.burst == 2.0
    assert allowed.limits("acme", "acme:shop.other").function.burst is None


def test_what_was_worked_out_is_kept_within_bounds() -> None:
    """The same answer again is the same object; ever new functions do not grow the memory."""
    allowed = allowances({"tenant.acme": TenantRecord(name="acme", created_at=0.0)})
    found = allowed.limits("acme", FUNCTION)
    allowed.changed("app.acme.shop")

    assert allowed.limits("acme", FUNCTION) is found
    for number in range(KEPT_AT_MOST + 10):
        allowed.limits("acme", f"acme:shop.f{number}")
    assert len(allowed._kept) <= KEPT_AT_MOST


def test_whom_nobody_knows_is_allowed_least() -> None:
    """An unknown tenant, and one whose tier is gone, are of the tier that is shed first."""
    allowed = allowances({"tenant.lost": TenantRecord(name="lost", created_at=0.0, tier="gone")})

    assert allowed.tier_of("nobody").name == allowed.tier_of("lost").name == "free"
    assert allowed.limits("nobody", FUNCTION).tenant == load_tiers()["free"].limits


def test_weights_multiply_and_tiers_are_in_the_order_of_shedding() -> None:
    """A tenant's weight counts within its tier; the registry's tiers stand over the configured ones."""
    records: dict[str, Any] = {
        "tenant.acme": TenantRecord(name="acme", created_at=0.0, tier="gold", weight=3.0),
        "tier.gold": Tier(name="gold", rank=-1, weight=2.0),
        "tier.free": Tier(name="free", rank=5, weight=1.0),
    }
    allowed = allowances(records)

    assert allowed.weight_of("acme") == 6.0
    assert [tier.name for tier in allowed.tiers()] == ["gold", "paid", "enterprise", "free"]
    assert allowed.configured("free") == load_tiers()["free"]
    assert allowed.tier("free") == records["tier.free"]
