"""No tenant has the whole room for keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.idempotency.shares import SLOTS, Shares

LIFE = 240.0


def test_a_tenant_is_held_to_its_share_and_no_other_is() -> None:
    """What has expired counts no more."""
    shares = Shares(limit=100, life=LIFE)
    shares.count("acme", 90, 0.0)

    assert shares.has_room("acme", 10, 0.0)
    assert not shares.has_room("acme", 11, 0.0)
    assert shares.has_room("rival", 100, 0.0)
    assert not shares.has_room("acme", 11, LIFE)
    assert shares.has_room("acme", 100, LIFE * (1 + 2 / SLOTS))
    assert shares.used("acme") == 0


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 30), st.floats(0.0, 60.0)), max_size=60))
def test_what_lives_is_counted(writes: list[tuple[str, int, float]]) -> None:
    """Never less than what was written within a life, never more than within a life and two slots."""
    shares, written, at = Shares(limit=100, life=LIFE), [], 0.0
    for tenant, size, pause in writes:
        at += pause
        if shares.has_room(tenant, size, at):
            shares.count(tenant, size, at)
            written.append((tenant, size, at))
        slot = LIFE / SLOTS
        lives = sum(size for who, size, then in written if who == tenant and at - then <= LIFE)
        counted = sum(size for who, size, then in written if who == tenant and at - then <= LIFE + 2 * slot)
        assert lives <= shares.used(tenant) <= min(counted, shares.limit)
