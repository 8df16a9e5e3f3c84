"""So many at a time, of each tenant and of all."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.limits import tenant_slots
from pilotlight_gateway.limits.tenant_slots import TenantSlots


def test_beyond_a_tenants_share_is_refused_until_one_is_free() -> None:
    """The refusal says of what there are too many, whose, and when to come again."""
    slots = TenantSlots(4, "uploads are under way", of_tenant=1, retry_after=2.0)
    with slots.slot("acme"):
        with pytest.raises(TooMuch, match="1 uploads are under way of acme already") as refused, slots.slot("acme"):
            pass
        with slots.slot("other"):
            assert slots.taken == 2
    with slots.slot("acme"):
        pass

    assert refused.value.retry_after == 2.0
    assert slots.taken == 0


def test_what_fails_gives_its_slot_back() -> None:
    """Whatever it raises."""
    slots = TenantSlots(1, "uploads", of_tenant=1, retry_after=1.0)
    for _ in range(2):
        with pytest.raises(KeyError), slots.slot("acme"):
            raise KeyError
    assert slots.taken == 0


def test_no_tenants_hold_all_slots() -> None:
    """Two of one while half of them are free; then one of each, whoever was first."""
    slots = TenantSlots(8, "uploads", of_tenant=2, retry_after=1.0)
    order = [f"t{number}" for number in range(4) for _ in range(3)] + [f"t{number}" for number in range(4, 12)]
    got: list[str] = []
    with ExitStack() as held:
        for tenant in order:
            try:
                held.enter_context(slots.slot(tenant))
            except TooMuch:
                continue
            got.append(tenant)

    assert got == ["t0", "t0", "t1", "t1", "t2", "t3", "t4", "t5"]


@pytest.mark.parametrize(("kind", "most"), [("upload", 8), ("deploy", 1), ("file", 2), ("lock", 1), ("follower", 64)])
def test_one_tenant_has_not_all_places(kind: str, most: int) -> None:
    """Who has as many as it may is told when to come again; another one is let in."""
    slots = getattr(tenant_slots, f"{kind}_slots")()
    with ExitStack() as stack:
        for _ in range(most):
            stack.enter_context(slots.slot("acme"))
        with pytest.raises(TooMuch) as refused:
            stack.enter_context(slots.slot("acme"))
        assert refused.value.retry_after
        stack.enter_context(slots.slot("umbrella"))
