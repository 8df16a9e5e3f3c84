"""Slots that are kept for a tier, the order of calls within a flow, and how many counters are kept."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.queue import FairQueue
from pilotlight_gateway.home.tier_queue import KEPT, RESERVE_S, FunctionCounters, QueueEntry
from tests.builders.calls import call


def push(queue: FairQueue, name: str, tenant: str = "acme", **more: object) -> QueueEntry:
    return queue.push(call(name, tenant, **more), cost=1.0, at=0.0)


@pytest.fixture
def queue() -> FairQueue:
    return FairQueue(FunctionCounters())


def push_gold(queue: FairQueue, name: str, share: float = 0.25, **more: object) -> QueueEntry:
    return push(queue, name, "gold", tier_rank=2, reserved=share, **more)


def test_a_tier_finds_its_reserve_free(queue: FairQueue) -> None:
    """A quarter of eight slots is kept for calls of a tier that has called lately; the others use the rest."""
    push_gold(queue, "g0")
    for n in range(10):
        push(queue, f"f{n}", "free")
    taken: list[QueueEntry] = []
    while (entry := queue.pick(free=8 - len(taken), slots=8, at=0.0)) is not None:
        taken.append(entry)
    assert sorted(entry.call_id for entry in taken) == ["f0", "f1", "f2", "f3", "f4", "f5", "g0"]
    push_gold(queue, "g1")
    entry = queue.pick(free=1, slots=8, at=1.0)
    assert entry is not None
    assert entry.call_id == "g1"
    queue.check_integrity()


def test_an_unused_reserve_lapses(queue: FairQueue) -> None:
    """After RESERVE_S without a call the slots are open to all tiers."""
    push_gold(queue, "g0")
    entry = queue.pick(free=4, slots=4, at=0.0)
    assert entry is not None
    queue.settle(entry)
    push(queue, "f", "free")
    assert queue.pick(free=1, slots=4, at=RESERVE_S - 1.0) is None
    assert queue.pick(free=1, slots=4, at=RESERVE_S + 1.0) is not None


def test_the_last_slot_is_never_reserved(queue: FairQueue) -> None:
    """With one slot, or with all reserved, calls without a reserve still go one at a time."""
    push_gold(queue, "g0", 1.0)
    push(queue, "f", "free")
    assert {entry.call_id for _ in range(2) if (entry := queue.pick(free=4, slots=4, at=0.0))} == {"f", "g0"}


def test_a_tier_that_had_to_wait_has_saved_nothing_up(queue: FairQueue) -> None:
    """Service of others from their reserve does not entitle it to all slots later."""
    for n in range(40):
        push_gold(queue, f"g{n}", 0.5)
        push(queue, f"f{n}", "free")
    for _ in range(20):
        entry = queue.pick(free=1, slots=2, at=0.0)
        assert entry is not None
        assert entry.call.tenant == "gold"
        queue.settle(entry, 1.0)
    turns = Counter(entry.call_id[0] for _ in range(10) if (entry := queue.pick()) is not None)
    assert turns["g"] >= 4


@given(
    steps=st.lists(st.tuples(st.sampled_from("gpfe"), st.sampled_from(list(Priority))), max_size=150),
    share=st.sampled_from([0.1, 0.25, 0.5, 1.0]),
)
def test_a_tier_never_waits_within_its_reserve(steps: list[tuple[str, Priority]], share: float) -> None:
    """In any history a tier with waiting calls uses its share of the slots, except that one slot is open to all."""
    slots = 8
    queue = FairQueue(FunctionCounters())
    push_gold(queue, "first", share)
    flying: list[QueueEntry] = []
    for number, (step, priority) in enumerate(steps):
        if step == "g":
            push_gold(queue, str(number), share, priority=priority)
        elif step in "pf":
            push(queue, str(number), step, tier_rank=int(step == "p"), priority=priority)
        elif flying:
            queue.settle(flying.pop(number % len(flying)))
        while len(flying) < slots and (entry := queue.pick(free=slots - len(flying), slots=slots, at=0.0)):
            flying.append(entry)
        running = sum(entry.call.tenant == "gold" for entry in flying)
        waiting = sum(entry.call.tenant == "gold" for entry in queue)
        assert not waiting or running >= min(int(share * slots), slots - 1)
        assert not len(queue) or len(flying) >= slots - int(share * slots)
        queue.check_integrity()


def filled(*names: str) -> tuple[FairQueue, dict[str, QueueEntry]]:
    """A queue with these calls, in their order."""
    queue = FairQueue(FunctionCounters())
    return queue, {name: queue.push(call(name), cost=1.0, at=float(n)) for n, name in enumerate(names)}


def picked(queue: FairQueue) -> list[str]:
    """All that it lets go, in that order."""
    names = []
    while queue and (entry := queue.pick()) is not None:
        names.append(entry.call_id)
    return names


def test_first_come_first_served() -> None:
    """A removed call is passed over."""
    queue, _ = filled("a", "b", "c")
    queue.remove("b")
    assert picked(queue) == ["a", "c"]


def test_a_call_that_comes_back_goes_where_it_was() -> None:
    """It goes before all calls that came after it, however many there are."""
    queue, entries = filled("a", "b", "c", "d")
    taken = [queue.pick() for _ in range(3)]
    assert [entry.call_id for entry in taken if entry is not None] == ["a", "b", "c"]
    for name in ("c", "a"):
        queue.give_back(entries[name], call(name, grant_number=1))
    assert picked(queue) == ["a", "c", "d"]


def test_dead_entries_are_bounded() -> None:
    """A flow whose calls come and leave for long is not longer than its waiting calls require."""
    queue, entries = filled("kept")
    flow = entries["kept"].flow
    for n in range(1_000):
        queue.push(call(f"call{n}"), cost=1.0, at=1.0)
        queue.remove(f"call{n}")
    assert flow._length < 200
    assert picked(queue) == ["kept"]


def test_counters_of_tenants_that_went_away_are_forgotten() -> None:
    """An idle counter at the floor is forgotten, so a million one-time tenants do not fill the memory."""
    counters = FunctionCounters()
    queue = FairQueue(counters)
    for n in range(3 * KEPT):
        queue.push(call(f"c{n}", f"t{n}"), cost=1.0, at=0.0)
        entry = queue.pick()
        assert entry is not None
        queue.settle(entry, 1.0)
    assert len(counters.classes[Priority.STANDARD]) <= 2 * KEPT


def test_a_counter_above_the_floor_is_kept() -> None:
    """Forgetting must not be a way to lose a debt."""
    counters = FunctionCounters()
    queue = FairQueue(counters)
    queue.push(call("dear", "debtor"), cost=1e6, at=0.0)
    queue.push(call("waits", "other"), cost=1.0, at=0.0)
    queue.pick()
    for n in range(3 * KEPT):
        queue.push(call(f"c{n}", f"t{n}"), cost=1.0, at=0.0)
        queue.remove(f"c{n}")
    assert counters.classes[Priority.STANDARD].of("debtor").value >= 1e6
