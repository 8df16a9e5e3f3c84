"""Which calls are refused at once with which Retry-After, and how their wait is estimated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import DeadlineExceeded, TooMuch, Unavailable
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.call_admission import QueueLimits, ServiceTime, admit, calls_ahead, wait_ms
from pilotlight_gateway.home.container_pool import ContainerPool
from pilotlight_gateway.home.queue import FairQueue
from pilotlight_gateway.home.tier_queue import FunctionCounters
from tests.builders.calls import call, credit


def service_time(hold_ms: float | None) -> ServiceTime:
    made = ServiceTime()
    made.hold_ms = hold_ms
    return made


def filled(count: int, tenant: str = "acme") -> FairQueue:
    queue = FairQueue(FunctionCounters())
    for n in range(count):
        queue.push(call(f"c{n}", tenant), cost=1.0, at=0.0)
    return queue


def busy(slots: int = 2) -> ContainerPool:
    pool = ContainerPool()
    pool.update(credit("c1", 1, *(f"h{n}" for n in range(slots)), slots=slots), 0.0)
    return pool


def test_unknown_times_refuse_no_call() -> None:
    """Without a container, a measured start or a measured service time the call may wait."""
    admit(call("x", remaining_ms=1.0), filled(50), ContainerPool(), service_time(None), QueueLimits(), 0.0)
    admit(call("x", remaining_ms=1.0), filled(50), busy(), service_time(None), QueueLimits(), 0.0)


def test_a_call_that_cannot_make_it_is_refused_with_the_time_of_its_turn() -> None:
    """The caller gets 429 now rather than a timeout later."""
    with pytest.raises(TooMuch) as caught:
        admit(call("x", remaining_ms=400.0), filled(9), busy(), service_time(100.0), QueueLimits(), 0.0)
    assert caught.value.wire_code == "queue_full"
    assert caught.value.retry_after == 0.5
    admit(call("x", remaining_ms=680.0), filled(9), busy(), service_time(100.0), QueueLimits(), 0.0)


def test_a_call_needs_time_to_run_after_its_wait() -> None:
    """A call that would start just before its deadline is refused, but one with a free slot is let in."""
    with pytest.raises(TooMuch):
        admit(call("x", remaining_ms=600.0), filled(9), busy(), service_time(100.0), QueueLimits(), 0.0)
    free = ContainerPool()
    free.update(credit("c1", slots=4), 0.0)
    admit(call("x", remaining_ms=50.0), filled(0), free, service_time(100.0), QueueLimits(), 0.0)


def test_the_fair_share_of_the_flow_decides_not_the_length_of_the_queue() -> None:
    """Of two tenants behind the same flood, the one with more weight is let in for longer."""
    queue = filled(100, "flood")
    for n in range(10):
        queue.push(call(f"l{n}", "light"), cost=1.0, at=0.0)
        queue.push(call(f"h{n}", "heavy", weight=4.0), cost=1.0, at=0.0)
    admit(call("x", "heavy", weight=4.0, remaining_ms=1_500.0), queue, busy(), service_time(100.0), QueueLimits(), 0.0)
    with pytest.raises(TooMuch):
        admit(call("y", "light", remaining_ms=1_500.0), queue, busy(), service_time(100.0), QueueLimits(), 0.0)


def test_a_call_is_refused_whose_queue_age_would_run_out() -> None:
    """Its tenant's limit in seconds of waiting is a bound of its own, and the age that it comes with counts."""
    limited = call("x", queue_ms=400.0)
    with pytest.raises(TooMuch) as caught:
        admit(limited, filled(9), busy(), service_time(100.0), QueueLimits(), 0.0)
    assert caught.value.wire_code == "queue_full"
    assert caught.value.retry_after == 0.5
    assert caught.value.more["limits"] == [
        ReachedLimit(limit="queue_seconds", tenant="acme", function="acme:app.fn", allowed=0.4, current=0.5)
    ]
    admit(call("x", queue_ms=600.0), filled(9), busy(), service_time(100.0), QueueLimits(), 0.0)
    with pytest.raises(TooMuch):
        admit(call("x", queue_ms=600.0, age_ms=200.0), filled(9), busy(), service_time(100.0), QueueLimits(), 0.0)


def test_a_tenants_own_bound_on_queued_calls_goes_first() -> None:
    """Narrower or wider than what the home allows by itself."""
    limits = QueueLimits(per_flow=5)
    with pytest.raises(TooMuch):
        admit(call("x", queue_calls=3), filled(3), busy(), service_time(None), limits, 0.0)
    admit(call("x", queue_calls=9), filled(8), busy(), service_time(None), limits, 0.0)


def test_a_call_is_held_while_more_containers_start() -> None:
    """Capacity that will be ready in time counts; if that is unknown, the call waits."""
    pool = busy()
    pool.start_ms = 300.0
    with pytest.raises(TooMuch):
        admit(call("x", remaining_ms=600.0), filled(20), pool, service_time(100.0), QueueLimits(), 0.0)
    pool.update(credit("c2", 1, slots=16, state=ContainerState.LOADING), 0.0)
    admit(call("x", remaining_ms=600.0), filled(20), pool, service_time(100.0), QueueLimits(), 0.0)
    pool.start_ms = None
    admit(call("x", remaining_ms=1.0), filled(20), pool, service_time(100.0), QueueLimits(), 0.0)


def test_a_refusal_says_which_times_do_not_fit() -> None:
    """A start that takes no time is no reason by itself: what the calls take is named beside it."""
    pool = ContainerPool()
    pool.start_ms = 40.0
    with pytest.raises(Unavailable) as caught:
        admit(call("x", remaining_ms=300.0), filled(0), pool, service_time(280.0), QueueLimits(), 0.0)
    assert caught.value.detail == (
        "A container would be ready in 40 ms, its calls take 280 ms, and the call has 300 ms."
    )


def test_a_free_slot_that_is_kept_for_a_higher_tier_is_none() -> None:
    """A call of another tier waits beside it, and is refused if it cannot."""
    queue = filled(0)
    queue.push(call("vip", "gold", tier_rank=2, reserved=0.5), cost=1.0, at=0.0)
    assert queue.remove("vip") is not None
    pool = ContainerPool()
    pool.update(credit("c1", 1, "h0", slots=2), 0.0)
    with pytest.raises(TooMuch) as caught:
        admit(call("x", remaining_ms=90.0), queue, pool, service_time(100.0), QueueLimits(), 0.0)
    assert caught.value.retry_after == 0.1
    admit(call("y", "gold", tier_rank=2, remaining_ms=90.0), queue, pool, service_time(100.0), QueueLimits(), 0.0)


def test_a_flood_of_another_tenant_does_not_get_a_call_refused() -> None:
    """The estimate accounts for the turns of tenants."""
    admit(call("x", "mouse", remaining_ms=400.0), filled(500), busy(), service_time(100.0), QueueLimits(), 0.0)


def test_a_known_start_counts_less_what_has_passed_of_it() -> None:
    """A start of 10 s that began 4 s ago leaves 6."""
    pool = ContainerPool()
    pool.start_ms = 10_000.0
    with pytest.raises(Unavailable) as caught:
        admit(call("x", remaining_ms=9_000.0), filled(0), pool, service_time(None), QueueLimits(), 4.0)
    assert caught.value.retry_after == 10.0
    pool.update(credit("c1", state=ContainerState.LOADING), 0.0)
    admit(call("x", remaining_ms=9_000.0), filled(0), pool, service_time(None), QueueLimits(), 4.0)
    with pytest.raises(Unavailable) as caught:
        admit(call("x", remaining_ms=5_000.0), filled(0), pool, service_time(None), QueueLimits(), 4.0)
    assert caught.value.retry_after == 6.0


def test_a_parked_container_is_there_sooner_than_another() -> None:
    """How long a start takes is no reason to refuse a call for which one only has to be unparked."""
    pool = ContainerPool()
    pool.start_ms = 10_000.0
    pool.update(credit("c1", state=ContainerState.PARKED), 0.0)
    admit(call("x", remaining_ms=300.0), filled(0), pool, service_time(50.0), QueueLimits(), 1.0)


def test_a_silent_container_is_unknown_rather_than_absent() -> None:
    """While the only container is quarantined the wait is unknown, and the call is admitted."""
    pool = busy()
    pool.start_ms = 10_000.0
    pool.quarantine(5.0)
    admit(call("x", remaining_ms=100.0), filled(0), pool, service_time(50.0), QueueLimits(), 5.0)


def test_queues_are_bounded_per_flow_and_per_version() -> None:
    """A full flow refuses its own tenant only; a full version refuses all tenants."""
    limits = QueueLimits(per_flow=5, per_version=8)
    queue = filled(5)
    with pytest.raises(TooMuch):
        admit(call("x"), queue, busy(), service_time(None), limits, 0.0)
    admit(call("x", "other"), queue, busy(), service_time(None), limits, 0.0)
    for n in range(3):
        queue.push(call(f"o{n}", "other"), cost=1.0, at=0.0)
    with pytest.raises(TooMuch) as caught:
        admit(call("x", "third"), queue, busy(), service_time(None), limits, 0.0)
    assert caught.value.retry_after == 1.0


def test_no_time_left_is_a_deadline_not_a_queue() -> None:
    """The caller gets 408, not 429."""
    with pytest.raises(DeadlineExceeded):
        admit(call("x", remaining_ms=0.0), filled(0), busy(), service_time(None), QueueLimits(), 0.0)


def test_a_refusal_names_the_tenants_own_limit_and_nothing_of_others() -> None:
    """A full flow is described in numbers, a queue full of other tenants' calls only as full."""
    queue = filled(30, "rival")
    for number in range(4):
        queue.push(call(f"a{number}"), cost=1.0, at=0.0)
    with pytest.raises(TooMuch) as caught:
        admit(call("x", queue_calls=4, function="acme:a.f"), queue, busy(), service_time(100.0), QueueLimits(), 0.0)
    assert caught.value.detail == "acme may have 4 standard calls waiting for acme:a.f, and 4 do."
    assert caught.value.more["limits"] == [
        ReachedLimit(limit="queue_calls", tenant="acme", function="acme:a.f", allowed=4, current=4)
    ]

    with pytest.raises(TooMuch) as caught:
        admit(call("x"), queue, busy(), service_time(100.0), QueueLimits(per_version=34), 0.0)
    assert (caught.value.detail, caught.value.more) == ("As many calls wait for this function as may.", {})


def waiting_of(**waiting: int) -> FairQueue:
    """So many calls of each tenant."""
    queue = FairQueue(FunctionCounters())
    for tenant, count in waiting.items():
        for n in range(count):
            queue.push(call(f"{tenant}{n}", tenant), cost=1.0, at=0.0)
    return queue


def test_turns_are_counted_not_calls() -> None:
    """A flood of one tenant is not ahead of another's first call, but is ahead of its own next one."""
    queue = waiting_of(elephant=100)
    assert calls_ahead(queue, call("x", "mouse")) == 1
    assert calls_ahead(queue, call("x", "elephant")) == 100
    queue.push(call("i", priority=Priority.INTERACTIVE), cost=1.0, at=0.0)
    assert calls_ahead(queue, call("x", "mouse")) == 2


def test_weight_is_what_turns_go_by() -> None:
    """A tenant of weight 4 has four turns for each of another."""
    queue = waiting_of(light=100)
    for n in range(8):
        queue.push(call(f"h{n}", "heavy", weight=4.0), cost=1.0, at=0.0)
    assert calls_ahead(queue, call("x", "heavy", weight=4.0)) == 8 + 3


def test_a_tenant_that_was_served_more_waits_until_others_have_caught_up() -> None:
    """The estimate reads counters, not only lengths: a charge that was corrected upwards costs turns."""
    queue = waiting_of(a=1, b=50)
    entry = queue.pick()
    assert entry is not None
    queue.settle(entry, 20.0)
    assert 19 <= calls_ahead(queue, call("x", entry.call.tenant)) <= 21


class_names = st.sampled_from(list(Priority))


@given(
    flows=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 8), st.integers(1, 9)), min_size=1, max_size=12),
    own=st.tuples(st.integers(1, 8), st.integers(1, 9)),
    served=st.integers(0, 60),
)
def test_as_many_calls_go_first_as_estimated(
    flows: list[tuple[int, int, int]], own: tuple[int, int], served: int
) -> None:
    """For any weights, costs and history within a class, the error is at most one turn of each flow."""
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
    while (entry := queue.pick()) is not None and entry.call_id != "mine":
        first += 1
    assert abs(first - told) <= len(flows)


@given(waiting=st.lists(st.tuples(class_names, st.integers(1, 40)), min_size=1, max_size=6), mine=class_names)
def test_classes_go_first_by_their_weight(waiting: list[tuple[Priority, int]], mine: Priority) -> None:
    """The error over classes is at most one turn of each in calls of the heaviest."""
    queue = FairQueue(FunctionCounters())
    for tenant, (priority, count) in enumerate(waiting):
        for n in range(count):
            queue.push(call(f"{tenant} {n}", f"t{tenant}", priority=priority), cost=1.0, at=0.0)
    probe = call("mine", "me", priority=mine)
    told = calls_ahead(queue, probe, 1.0)
    queue.push(probe, cost=1.0, at=0.0)
    first = 0
    while (entry := queue.pick()) is not None and entry.call_id != "mine":
        first += 1
    assert abs(first - told) <= 3 * len(waiting) + 12


def test_the_wait_is_the_calls_ahead_over_the_rate_of_slots() -> None:
    """9 calls ahead, 2 slots of 100 ms each: 500 ms until the 10th has one."""
    assert wait_ms(9, busy(), service_time(100.0), 0.0) == 500.0


def test_a_free_slot_means_no_wait() -> None:
    """Whatever is known of the speed; a slot that is kept for others is not free."""
    pool = ContainerPool()
    pool.update(credit("c1", slots=4), 0.0)
    assert wait_ms(3, pool, service_time(None), 0.0) == 0.0
    assert wait_ms(4, pool, service_time(None), 0.0) is None
    assert wait_ms(3, pool, service_time(100.0), 0.0, kept=1) == pytest.approx(100 / 3)


def test_containers_that_start_help_from_when_they_are_ready() -> None:
    """20 calls before it at 20 a second; after 500 ms, ten more slots."""
    pool = busy()
    pool.start_ms = 500.0
    pool.update(credit("c2", 1, slots=10, state=ContainerState.LOADING), 0.0)
    assert wait_ms(19, pool, service_time(100.0), 0.0) == 500.0
    assert wait_ms(31, pool, service_time(100.0), 0.0) == pytest.approx(500.0 + 12 * 100.0 / 12)
    assert wait_ms(5, pool, service_time(100.0), 0.0) == 300.0


def test_the_first_start_is_waited_for_and_then_its_slots() -> None:
    """Without any container: the learnt start, less what has passed of it, then turns."""
    pool = ContainerPool()
    assert wait_ms(0, pool, service_time(100.0), 0.0) is None
    pool.start_ms = 1_000.0
    assert wait_ms(0, pool, service_time(100.0), 0.0) == 1_000.0
    pool.update(credit("c1", slots=2, state=ContainerState.BINDING), 0.0)
    assert wait_ms(1, pool, service_time(100.0), 0.5) == 500.0
    assert wait_ms(11, pool, service_time(100.0), 0.5) == 1_000.0


def test_the_service_time_follows_about_twenty_calls() -> None:
    """The first call is one of several, and a change is learnt over about twenty."""
    learnt = ServiceTime()
    for hold in (1_000.0, 100.0, 100.0, 100.0):
        learnt.ended(hold, None)
    assert learnt.hold_ms == pytest.approx(325.0)
    for _ in range(100):
        learnt.ended(100.0, 7.0)
    assert learnt.hold_ms == pytest.approx(100.0, rel=0.05)
    assert learnt.cost == pytest.approx(7.0)
    assert learnt.service_ms == pytest.approx(100.0, rel=0.3)


def test_a_start_without_known_slots_is_waited_for() -> None:
    """It counts from when it should be ready, however many calls wait."""
    pool = ContainerPool()
    pool.update(credit("c1", 1, slots=0, state=ContainerState.BINDING), 0.0)
    pool.start_ms = 500.0

    assert wait_ms(10.0, pool, service_time(20.0), 0.1) == pytest.approx(400.0)
