"""The ring of kept calls."""

from __future__ import annotations

from pilotlight_gateway.traces.kept_calls import KeptCalls
from tests.builders.kept import kept_call


def test_the_newest_come_first_and_only_their_tenants_own() -> None:
    ring = KeptCalls()
    for number in range(3):
        ring.add(kept_call(id=f"call_{number}"))
    ring.add(kept_call(id="call_x", tenant="other"))
    assert [call.id for call in ring.of_tenant("acme")] == ["call_2", "call_1", "call_0"]
    assert (ring.find("acme", "call_x"), len(ring), [*ring.of_tenant("nobody")]) == (None, 4, [])


def test_who_fails_most_displaces_its_own() -> None:
    """A flood of one tenant leaves the other's oldest call where it is; one call more than there is room drops one."""
    ring = KeptCalls(10)
    ring.add(kept_call(id="quiet", tenant="quiet"))
    for number in range(100):
        ring.add(kept_call(id=f"call_{number}", tenant="loud"))
    assert ring.find("quiet", "quiet") is not None
    assert (len(ring), ring.dropped) == (10, 91)
    for number in range(6):  # and whoever has less than its share takes from the one that has most
        ring.add(kept_call(id=f"new_{number}", tenant="third"))
    assert (len([*ring.of_tenant("third")]), ring.find("quiet", "quiet") is not None) == (3, True)


def test_a_call_is_kept_once() -> None:
    """What is learnt of it later takes its place."""
    ring = KeptCalls()
    ring.add(kept_call())
    ring.add(kept_call(code="rate_limited"))
    assert [call.code for call in ring.of_tenant("acme")] == ["rate_limited"]


def test_nothing_is_left_of_a_tenant_that_is_forgotten() -> None:
    ring = KeptCalls()
    ring.add(kept_call())
    ring.forget("acme")
    ring.forget("nobody")
    assert (len(ring), [*ring.of_tenant("acme")]) == (0, [])
