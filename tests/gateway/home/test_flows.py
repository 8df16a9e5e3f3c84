"""One tenant's calls of one class: first come first served, also when some come back or leave."""

from __future__ import annotations

from pilotlight_gateway.home.counters import FunctionCounters
from pilotlight_gateway.home.flows import QueueEntry
from pilotlight_gateway.home.queue import FairQueue
from tests.builders.calls import call


def filled(*names: str) -> tuple[FairQueue, dict[str, QueueEntry]]:
    """A queue with these calls, in their order."""
    queue = FairQueue(FunctionCounters(), tenant_in_flight=None)
    return queue, {name: queue.push(call(name), cost=1.0, at=float(n)) for n, name in enumerate(names)}


def picked(queue: FairQueue) -> list[str]:
    """All that it lets go, in that order."""
    names = []
    while queue and (entry := queue.pick()) is not None:
        names.append(entry.id)
    return names


def test_first_come_first_served() -> None:
    """Whoever has left is passed over."""
    queue, _ = filled("a", "b", "c")
    queue.remove("b")
    assert picked(queue) == ["a", "c"]


def test_a_call_that_comes_back_goes_where_it_was() -> None:
    """Before all that came after it, however many these are."""
    queue, entries = filled("a", "b", "c", "d")
    taken = [queue.pick() for _ in range(3)]
    assert [entry.id for entry in taken if entry is not None] == ["a", "b", "c"]
    for name in ("c", "a"):
        queue.give_back(entries[name], call(name, grant_number=1))
    assert picked(queue) == ["a", "c", "d"]


def test_the_dead_take_no_room() -> None:
    """A flow whose calls come and leave for long is not longer than what waits in it."""
    queue, entries = filled("kept")
    flow = entries["kept"].flow
    for n in range(1_000):
        queue.push(call(f"call{n}"), cost=1.0, at=1.0)
        queue.remove(f"call{n}")
    assert flow._length < 200
    assert picked(queue) == ["kept"]
