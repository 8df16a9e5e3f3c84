"""Room that is kept for a tier: who may use it, for how long, and what it does to fairness."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.counters import FunctionCounters
from pilotlight_gateway.home.flows import QueueEntry
from pilotlight_gateway.home.queue import FairQueue
from pilotlight_gateway.home.tier_queue import RESERVED_FOR
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
    assert sorted(entry.id for entry in taken) == ["f0", "f1", "f2", "f3", "f4", "f5", "g0"]
    push_gold(queue, "g1")
    entry = queue.pick(free=1, slots=8, at=1.0)
    assert entry is not None
    assert entry.id == "g1"
    queue.check_integrity()


def test_a_reserve_that_nobody_asks_for_lapses(queue: FairQueue) -> None:
    """A slot for nobody helps nobody."""
    push_gold(queue, "g0")
    entry = queue.pick(free=4, slots=4, at=0.0)
    assert entry is not None
    queue.settle(entry)
    push(queue, "f", "free")
    assert queue.pick(free=1, slots=4, at=RESERVED_FOR - 1.0) is None
    assert queue.pick(free=1, slots=4, at=RESERVED_FOR + 1.0) is not None


def test_the_last_slot_is_nobodys(queue: FairQueue) -> None:
    """With one slot, or with everything reserved, calls without a reserve still go one at a time."""
    push_gold(queue, "g0", 1.0)
    push(queue, "f", "free")
    assert {entry.id for _ in range(2) if (entry := queue.pick(free=4, slots=4, at=0.0))} == {"f", "g0"}


def test_a_tier_that_had_to_wait_has_saved_nothing_up(queue: FairQueue) -> None:
    """What others were served from their reserve does not entitle it to all slots later."""
    for n in range(40):
        push_gold(queue, f"g{n}", 0.5)
        push(queue, f"f{n}", "free")
    for _ in range(20):
        entry = queue.pick(free=1, slots=2, at=0.0)
        assert entry is not None
        assert entry.call.tenant == "gold"
        queue.settle(entry, 1.0)
    turns = Counter(entry.id[0] for _ in range(10) if (entry := queue.pick()) is not None)
    assert turns["g"] >= 4


@settings(deadline=None)  # the machine may be busy
@given(
    steps=st.lists(st.tuples(st.sampled_from("gpfe"), st.sampled_from(list(Priority))), max_size=150),
    share=st.sampled_from([0.1, 0.25, 0.5, 1.0]),
)
def test_whoever_has_a_reserve_never_waits_within_it(steps: list[tuple[str, Priority]], share: float) -> None:
    """In any history: a tier with calls waiting has its share of the slots in use; but one slot is open to all."""
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
