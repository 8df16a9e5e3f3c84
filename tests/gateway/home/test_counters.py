"""Virtual counters: lift, floor, and how many are kept."""

from __future__ import annotations

from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.counters import KEPT, FunctionCounters
from pilotlight_gateway.home.queue import FairQueue
from tests.builders.calls import call


def test_counters_of_tenants_that_went_away_are_forgotten() -> None:
    """A counter at the floor says nothing: a million one-time tenants do not fill the memory."""
    counters = FunctionCounters()
    queue = FairQueue(counters)
    for n in range(3 * KEPT):
        queue.push(call(f"c{n}", f"t{n}"), cost=1.0, at=0.0)
        entry = queue.pick()
        assert entry is not None
        queue.settle(entry, 1.0)
    assert len(counters.classes[Priority.STANDARD]) <= 2 * KEPT


def test_a_counter_that_still_means_something_is_kept() -> None:
    """Forgetting must not be a way to lose one's debt."""
    counters = FunctionCounters()
    queue = FairQueue(counters)
    queue.push(call("dear", "debtor"), cost=1e6, at=0.0)
    queue.push(call("waits", "other"), cost=1.0, at=0.0)
    queue.pick()
    for n in range(3 * KEPT):
        queue.push(call(f"c{n}", f"t{n}"), cost=1.0, at=0.0)
        queue.remove(f"c{n}")
    assert counters.classes[Priority.STANDARD].of("debtor").value >= 1e6
