"""The ring of kept calls."""

from __future__ import annotations

from pilotlight_core.model.tracing.sampled_call import MOST_OF_SHEET, SampledRecord
from pilotlight_gateway.traces.kept_calls import KeptCalls
from tests.builders.kept import AT_NS, kept_call, sampled_call, written


def add(ring: KeptCalls, *calls: SampledRecord) -> None:
    """Sampled ones, as a gateway keeps them."""
    for call in calls:
        written(ring.sheet_of(call.tenant), call)
        ring.count(call.tenant)


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


def test_sampled_calls_stand_among_the_others_by_when_they_ended() -> None:
    """And are found by their ids, whole, as long as they are there."""
    ring = KeptCalls(gateway="gw1")
    for number in range(3):
        ring.add(kept_call(id=f"whole_{number}", arrived_ns=AT_NS + number * 10**9, total_ms=10.0))
        add(ring, sampled_call(id=f"small_{number}", total_ms=500.0 + number * 1000.0))
    names = ["small_2", "whole_2", "small_1", "whole_1", "small_0", "whole_0"]
    assert [call.id for call in ring.of_tenant("acme")] == names
    assert [call.id for call in ring.of_tenant("acme", "acme:shop.rank", "sampled")] == names[::2]
    assert [*ring.of_tenant("acme", "acme:shop.other")] == []
    assert ring.find("acme", "small_1") == sampled_call(id="small_1", total_ms=1_500.0).whole("gw1")
    assert (ring.find_whole("acme", "small_1"), ring.find("acme", "small_"), ring.find("other", "small_1")) == (
        None,
    ) * 3
    ring.forget("acme")
    assert (len(ring), ring.find("acme", "small_1")) == (0, None)


def test_the_oldest_goes_whichever_it_is() -> None:
    """One by one, from sheet to sheet; and a call that is kept again is told of once."""
    ring = KeptCalls(10)
    for number in range(3 * MOST_OF_SHEET):
        add(ring, sampled_call(id=f"call_{number}", total_ms=float(number)))
        if number == MOST_OF_SHEET - 5:
            ring.add(kept_call(id="whole", arrived_ns=AT_NS, total_ms=number + 0.5))
    assert (len(ring), ring.dropped) == (10, 3 * MOST_OF_SHEET - 9)
    assert [call.id for call in ring.of_tenant("acme")] == [
        f"call_{3 * MOST_OF_SHEET - 1 - back}" for back in range(10)
    ]
    ring.add(kept_call(id="call_383", total_ms=1e6))
    again = [call for call in ring.of_tenant("acme") if call.id == "call_383"]
    assert [call.total_ms for call in again] == [1e6]


def test_whoever_is_sampled_most_displaces_its_own() -> None:
    """Whatever the others' calls were kept for."""
    ring = KeptCalls(10)
    ring.add(kept_call(id="quiet", tenant="quiet"))
    add(ring, sampled_call(id="few", tenant="few"))
    add(ring, *[sampled_call(id=f"call_{number}", tenant="loud") for number in range(300)])
    assert (len(ring), ring.dropped) == (10, 292)
    assert ring.find("quiet", "quiet") is not None
    assert ring.find("few", "few") is not None
    assert [call.id for call in ring.of_tenant("loud")] == [f"call_{299 - back}" for back in range(8)]
