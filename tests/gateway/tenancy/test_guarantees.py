"""What is guaranteed together is no more than the fleet."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import NO_LIMITS, Limits, Tier
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord
from pilotlight_gateway.tenancy.guarantees import check_guarantees
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry


def registry() -> MemoryRegistry:
    """`zoo` and `inn` are guaranteed a quarter each by their tier, `acme` 40 % for itself; `bar` has nothing."""
    found = MemoryRegistry()
    found.tier_records["gold"] = Tier(name="gold", limits=Limits(guarantee=0.25))
    found.tier_records["none"] = Tier(name="none")
    for name, tier in (("zoo", "gold"), ("inn", "gold"), ("acme", "none"), ("bar", "none")):
        found.tenant_records[name] = TenantRecord(name=name, created_at=0.0, tier=tier)
    found.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(guarantee=0.4))
    return found


def test_what_is_left_may_be_guaranteed() -> None:
    """Also to those who come in with their tier, and by lowering what was too much."""
    known = registry()
    check_guarantees(known, own={"bar": Limits(guarantee=0.1)})
    check_guarantees(known, own={"acme": Limits(guarantee=0.5)})
    check_guarantees(known, own={"acme": NO_LIMITS}, tiers={"gold": Limits(guarantee=0.5)})

    known.limit_records["bar"] = LimitsRecord(tenant="bar", limits=Limits(guarantee=0.9))
    check_guarantees(known, own={"bar": Limits(guarantee=0.8)})


def test_what_is_too_much_is_refused_with_what_is_left() -> None:
    """A tenant's own, a tier's for all of its tenants, a new tenant of a tier, and one that moves to it."""
    known = registry()
    with pytest.raises(BadInput, match=r"101 % of the fleet .* 90 % are guaranteed to others, so 10 % are left"):
        check_guarantees(known, own={"bar": Limits(guarantee=0.11)})
    with pytest.raises(BadInput, match=r"104 % .* 40 % are guaranteed to others, so 60 % are left"):
        check_guarantees(known, tiers={"gold": Limits(guarantee=0.32)})
    with pytest.raises(BadInput, match="115 %"):
        check_guarantees(known, moves={"new": "gold"})
    with pytest.raises(BadInput, match="115 %"):
        check_guarantees(known, moves={"bar": "gold"})
    check_guarantees(known, moves={"acme": "gold"})  # its own stands over the tier's


def test_nobody_is_left_without_any_share() -> None:
    """With nothing guaranteed and nothing to borrow, no function could ever run."""
    with pytest.raises(BadInput, match="bar has no guarantee and would borrow nothing"):
        check_guarantees(registry(), own={"bar": Limits(borrow=0.0)})
    check_guarantees(registry(), own={"bar": Limits(guarantee=0.1, borrow=0.0)})
