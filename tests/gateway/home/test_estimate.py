"""How long a call will wait: what goes first, and how fast that is done."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight_core.model.messages.agent_messages import ContainerState
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.container_pool import ContainerPool
from pilotlight_gateway.home.counters import FunctionCounters
from pilotlight_gateway.home.estimate import ServiceTime, calls_ahead, wait_ms
from pilotlight_gateway.home.queue import FairQueue
from tests.builders.calls import call, credit


def pace(hold_ms: float | None) -> ServiceTime:
    made = ServiceTime()
    made.hold_ms = hold_ms
    return made


def busy(slots: int = 2) -> ContainerPool:
    rooms = ContainerPool()
    rooms.hear(credit("c1", 1, *(f"h{n}" for n in range(slots)), slots=slots), 0.0)
    return rooms


def filled(**waiting: int) -> FairQueue:
    """So many calls of each tenant."""
    queue = FairQueue(FunctionCounters())
    for tenant, count in waiting.items():
        for n in range(count):
            queue.push(call(f"{tenant}{n}", tenant), cost=1.0, at=0.0)
    return queue


def test_turns_are_counted_not_calls() -> None:
    """A flood of one tenant is not ahead of another's first call, but is ahead of its own next one."""
    queue = filled(elephant=100)
    assert calls_ahead(queue, call("x", "mouse")) == 1
    assert calls_ahead(queue, call("x", "elephant")) == 100
    queue.push(call("i", priority=Priority.INTERACTIVE), cost=1.0, at=0.0)
    assert calls_ahead(queue, call("x", "mouse")) == 2


def test_weight_is_what_turns_go_by() -> None:
    """A tenant of weight 4 has four turns for each of another."""
    queue = filled(light=100)
    for n in range(8):
        queue.push(call(f"h{n}", "heavy", weight=4.0), cost=1.0, at=0.0)
    assert calls_ahead(queue, call("x", "heavy", weight=4.0)) == 8 + 3


def test_who_has_had_much_waits_until_the_others_have_caught_up() -> None:
    """Counters are looked at, not only lengths: a charge corrected upwards is paid for in turns."""
    queue = filled(a=1, b=50)
    entry = queue.pick()
    assert entry is not None
    queue.settle(entry, 20.0)
    assert 19 <= calls_ahead(queue, call("x", entry.call.tenant)) <= 21


class_names = st.sampled_from(list(Priority))


@settings(deadline=None)  # the machine may be busy
@given(
    flows=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 8), st.integers(1, 9)), min_size=1, max_size=12),
    own=st.tuples(st.integers(1, 8), st.integers(1, 9)),
    served=st.integers(0, 60),
)
def test_as_many_go_first_as_was_said(flows: list[tuple[int, int, int]], own: tuple[int, int], served: int) -> None:
    """Within a class, for any weights, costs and history: off by one turn of each flow at most."""
    queue = FairQueue(FunctionCounters())
    for tenant, (count, weight, cost) in enumerate(flows):
        for n in range(count):
            queue.push(call(f"{tenant} {n}", f"t{tenant}", weight=float(weight)), cost=float(cost), at=0.0)
    for _ in range(served):
        queue.pick()
    weight, cost = own
    mine = call("mine", "me", weight=float(weight), cost=float(cost))
    told = calls_ahead(queue, mine)
    queue.push(mine, cost=float(cost), at=0.0)
    first = 0
    while (entry := queue.pick()) is not None and entry.id != "mine":
        first += 1
    assert abs(first - told) <= len(flows)


@settings(deadline=None)  # the machine may be busy
@given(waiting=st.lists(st.tuples(class_names, st.integers(1, 40)), min_size=1, max_size=6), mine=class_names)
def test_classes_go_first_by_their_weight(waiting: list[tuple[Priority, int]], mine: Priority) -> None:
    """Over the classes: off by what one turn of each is worth in calls of the heaviest."""
    queue = FairQueue(FunctionCounters())
    for tenant, (priority, count) in enumerate(waiting):
        for n in range(count):
            queue.push(call(f"{tenant} {n}", f"t{tenant}", priority=priority), cost=1.0, at=0.0)
    probe = call("mine", "me", priority=mine)
    told = calls_ahead(queue, probe, 1.0)
    queue.push(probe, cost=1.0, at=0.0)
    first = 0
    while (entry := queue.pick()) is not None and entry.id != "mine":
        first += 1
    assert abs(first - told) <= 3 * len(waiting) + 12


def test_the_wait_is_the_calls_ahead_over_the_rate_of_slots() -> None:
    """9 calls ahead, 2 slots of 100 ms each: 500 ms until the 10th has one."""
    assert wait_ms(9, busy(), pace(100.0), 0.0) == 500.0


def test_a_free_slot_means_no_wait() -> None:
    """Whatever is known of the speed; a slot that is kept for others is not free."""
    rooms = ContainerPool()
    rooms.hear(credit("c1", slots=4), 0.0)
    assert wait_ms(3, rooms, pace(None), 0.0) == 0.0
    assert wait_ms(4, rooms, pace(None), 0.0) is None
    assert wait_ms(3, rooms, pace(100.0), 0.0, kept=1) == pytest.approx(100 / 3)


def test_containers_that_start_help_from_when_they_are_ready() -> None:
    """20 calls before it at 20 a second; after 500 ms, ten more slots."""
    rooms = busy()
    rooms.start_ms = 500.0
    rooms.hear(credit("c2", 1, slots=10, state=ContainerState.LOADING), 0.0)
    assert wait_ms(19, rooms, pace(100.0), 0.0) == 500.0
    assert wait_ms(31, rooms, pace(100.0), 0.0) == pytest.approx(500.0 + 12 * 100.0 / 12)
    assert wait_ms(5, rooms, pace(100.0), 0.0) == 300.0


def test_the_first_start_is_waited_for_and_then_its_slots() -> None:
    """Without any container: the learnt start, less what has passed of it, then turns."""
    rooms = ContainerPool()
    assert wait_ms(0, rooms, pace(100.0), 0.0) is None
    rooms.start_ms = 1_000.0
    assert wait_ms(0, rooms, pace(100.0), 0.0) == 1_000.0
    rooms.hear(credit("c1", slots=2, state=ContainerState.BINDING), 0.0)
    assert wait_ms(1, rooms, pace(100.0), 0.5) == 500.0
    assert wait_ms(11, rooms, pace(100.0), 0.5) == 1_000.0


def test_the_pace_is_a_mean_that_no_single_call_rules() -> None:
    """The first is one of several, and a change is learnt over about twenty."""
    learnt = ServiceTime()
    for hold in (1_000.0, 100.0, 100.0, 100.0):
        learnt.ended(hold, None)
    assert learnt.hold_ms == pytest.approx(325.0)
    for _ in range(100):
        learnt.ended(100.0, 7.0)
    assert learnt.hold_ms == pytest.approx(100.0, rel=0.05)
    assert learnt.cost == pytest.approx(7.0)
    assert learnt.service_ms == pytest.approx(100.0, rel=0.3)


def test_a_start_that_has_not_said_how_many_it_takes_is_waited_for() -> None:
    """It counts from when it should be ready, however many calls wait."""
    rooms = ContainerPool()
    rooms.hear(credit("c1", 1, slots=0, state=ContainerState.BINDING), 0.0)
    rooms.start_ms = 500.0

    assert wait_ms(10.0, rooms, pace(20.0), 0.1) == pytest.approx(400.0)
