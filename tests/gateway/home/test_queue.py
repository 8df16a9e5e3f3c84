"""Which call is next: fairness between classes and tenants, refunds, removal, caps."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.queue import WEIGHTS, FairQueue
from pilotlight_gateway.home.tier_queue import FunctionCounters, QueueEntry
from tests.builders.calls import call


def push(queue: FairQueue, name: str, tenant: str = "acme", *, cost: float = 1.0, **more: object) -> QueueEntry:
    return queue.push(call(name, tenant, cost=cost, **more), cost=cost, at=0.0)


def picks(queue: FairQueue, count: int) -> list[str]:
    found = []
    for _ in range(count):
        entry = queue.pick()
        assert entry is not None
        found.append(entry.call.call_id)
    return found


@pytest.fixture
def queue() -> FairQueue:
    return FairQueue(FunctionCounters())


def test_one_flow_is_first_come_first_served(queue: FairQueue) -> None:
    """Within a tenant and class, the order of arrival decides."""
    for name in "abc":
        push(queue, name)
    assert picks(queue, 3) == ["a", "b", "c"]
    assert queue.pick() is None


def test_tenants_take_turns_however_much_one_sends(queue: FairQueue) -> None:
    """A flood of one tenant costs another at most one turn."""
    for n in range(100):
        push(queue, f"flood{n}", "elephant")
    picks(queue, 10)
    for n in range(3):
        push(queue, f"mouse{n}", "mouse")
    assert [name.startswith("mouse") for name in picks(queue, 6)].count(True) == 3


def test_turns_are_measured_in_cost_not_in_calls(queue: FairQueue) -> None:
    """A tenant whose calls cost three times as much gets a third of the turns."""
    for n in range(100):
        push(queue, f"dear{n}", "dear", cost=3.0)
        push(queue, f"cheap{n}", "cheap", cost=1.0)
    turns = Counter(name.rstrip("0123456789") for name in picks(queue, 80))
    assert turns == {"cheap": 60, "dear": 20}


def test_an_estimate_is_corrected_when_the_call_ends(queue: FairQueue) -> None:
    """A tenant that estimates 1 and takes 9 is charged 9."""
    for n in range(30):
        push(queue, f"liar{n}", "liar")
        push(queue, f"honest{n}", "honest")
    turns: Counter[str] = Counter()
    for _ in range(20):
        entry = queue.pick()
        assert entry is not None
        turns[entry.call.tenant] += 1
        queue.settle(entry, 9.0 if entry.call.tenant == "liar" else 1.0)
    assert turns == {"honest": 18, "liar": 2}


def test_a_correction_downwards_moves_a_flow_forward_at_once(queue: FairQueue) -> None:
    """An estimate that was too high must not keep its tenant waiting behind others."""
    push(queue, "big", "slow", cost=100.0)
    entry = queue.pick()
    assert entry is not None
    push(queue, "other", "slow")
    for n in range(5):
        push(queue, f"x{n}", "x")
    queue.settle(entry, 0.5)
    assert "other" in picks(queue, 3)


def test_an_idle_tenant_saves_nothing_up(queue: FairQueue) -> None:
    """A tenant that comes back is lifted to the least served of the active ones."""
    for n in range(50):
        push(queue, f"a{n}", "a")
    picks(queue, 40)
    for n in range(10):
        push(queue, f"b{n}", "b")
    turns = [name[0] for name in picks(queue, 10)]
    assert turns.count("b") == 5


def test_a_tenant_in_an_empty_queue_starts_level_with_the_last_that_left(queue: FairQueue) -> None:
    """An empty queue does not reset fairness."""
    for n in range(20):
        push(queue, f"a{n}", "a")
    picks(queue, 20)
    for n in range(10):
        push(queue, f"b{n}", "b")
        push(queue, f"more{n}", "a")
    assert [name[0] for name in picks(queue, 10)].count("b") == 5


def test_classes_share_by_weight(queue: FairQueue) -> None:
    """Under load interactive, standard and batch get 8 : 3 : 1 of the cost."""
    for n in range(100):
        for priority in Priority:
            push(queue, f"{priority}{n}", priority=priority)
    turns = Counter(name.rstrip("0123456789") for name in picks(queue, 120))
    assert turns == {"interactive": 80, "standard": 30, "batch": 10}


def test_batch_is_never_starved(queue: FairQueue) -> None:
    """However many interactive calls there are, batch calls are picked too."""
    push(queue, "batch", priority=Priority.BATCH)
    for n in range(1000):
        push(queue, f"i{n}", priority=Priority.INTERACTIVE)
    assert "batch" in picks(queue, 13)


def test_a_class_that_was_idle_does_not_take_everything_when_it_comes_back(queue: FairQueue) -> None:
    """Service of interactive alone does not let batch exclude it later, nor the other way round."""
    for n in range(100):
        push(queue, f"i{n}", priority=Priority.INTERACTIVE)
    picks(queue, 100)
    for n in range(50):
        push(queue, f"b{n}", priority=Priority.BATCH)
        push(queue, f"again{n}", priority=Priority.INTERACTIVE)
    assert Counter(name[0] for name in picks(queue, 18))["a"] >= 14


def test_an_unknown_class_counts_as_standard(queue: FairQueue) -> None:
    """A newer gateway may know more classes than this one."""
    push(queue, "new", priority="realtime")
    assert picks(queue, 1) == ["new"]


def test_a_returned_call_goes_back_to_its_place_uncharged(queue: FairQueue) -> None:
    """A call that no container took counts as not picked, in whatever order calls return."""
    for name in "abcd":
        push(queue, name)
    push(queue, "other", "other")
    first, other, second = queue.pick(), queue.pick(), queue.pick()
    assert first is not None
    assert second is not None
    assert other is not None
    assert [first.call.call_id, other.call.call_id, second.call.call_id] == ["a", "other", "b"]
    queue.settle(other)
    queue.give_back(second, second.call)
    queue.give_back(first, first.call)
    queue.check_integrity()
    assert picks(queue, 4) == ["a", "b", "c", "d"]


def test_a_removed_call_is_never_picked(queue: FairQueue) -> None:
    """Cancel works anywhere in the line, also for the only call of a flow."""
    for name in "abc":
        push(queue, name)
    push(queue, "only", "lonely")
    for name in ("b", "only"):
        assert queue.remove(name) is not None
    assert queue.remove("b") is None
    queue.check_integrity()
    assert picks(queue, 2) == ["a", "c"]
    assert queue.pick() is None


def test_removed_calls_leave_no_entries_behind(queue: FairQueue) -> None:
    """A client that queues and cancels for ever does not fill the memory."""
    push(queue, "stays")
    for n in range(5000):
        push(queue, f"x{n}")
        push(queue, f"y{n}", f"tenant{n}")
        queue.remove(f"x{n}")
        queue.remove(f"y{n}")
    (entry,) = queue
    assert len(list(entry.flow)) < 200
    assert len(entry.flow.tier_queue._heap) < 200
    assert len(entry.flow.tier_queue.counters) < 2000
    queue.check_integrity()


def test_versions_of_a_function_share_counters() -> None:
    """Calling two versions does not get a tenant a second share of either."""
    counters = FunctionCounters()
    old, new = FairQueue(counters), FairQueue(counters)
    for n in range(20):
        push(old, f"a-old{n}", "a")
        push(new, f"a-new{n}", "a")
        push(new, f"b{n}", "b")
    turns: Counter[str] = Counter()
    for _ in range(10):
        for queue in (old, new):
            entry = queue.pick()
            assert entry is not None
            turns[entry.call.call_id[0]] += 1
    assert turns["b"] >= 9  # all that `new` has to give goes to b, since a is served by `old`


def test_a_refund_at_one_version_is_seen_by_the_other() -> None:
    """A charge taken back moves the tenant forward in every queue that it waits in."""
    counters = FunctionCounters()
    old, new = FairQueue(counters), FairQueue(counters)
    for n in range(5):
        push(new, f"b{n}", "b")
    push(old, "dear", "a", cost=1000.0)
    dear = old.pick()
    assert dear is not None
    push(new, "a", "a")
    assert picks(new, 2) == ["b0", "b1"]
    old.settle(dear, 0.01)
    assert picks(new, 1) == ["a"]
    new.check_integrity()
    old.close()


def test_the_oldest_is_known_also_after_it_was_returned(queue: FairQueue) -> None:
    """The age of the queue is that of the call that waits longest."""
    assert queue.oldest() is None
    queue.push(call("a", age_ms=500.0), cost=1.0, at=10.0)
    queue.push(call("b"), cost=1.0, at=20.0)
    assert queue.oldest() == 9.5
    entry = queue.pick()
    assert entry is not None
    assert queue.oldest() == 20.0
    queue.give_back(entry, entry.call)
    assert queue.oldest() == 9.5


steps = st.lists(
    st.tuples(st.sampled_from("pppkksrxfc"), st.integers(0, 4), st.sampled_from(list(Priority)), st.integers(1, 50)),
    max_size=200,
)


@given(steps=steps)
def test_any_history_keeps_the_counts_right(steps: list[tuple[str, int, Priority, int]]) -> None:
    """Whatever is pushed, picked, settled, returned and removed: nothing is lost, doubled or miscounted."""
    queue = FairQueue(FunctionCounters())
    flying: list[QueueEntry] = []
    waiting: set[str] = set()
    for number, (step, tenant, priority, cost) in enumerate(steps):
        if step == "p":
            push(queue, str(number), f"t{tenant}", cost=float(cost), priority=priority)
            waiting.add(str(number))
        elif step == "k" and (entry := queue.pick()) is not None:
            waiting.remove(entry.call.call_id)
            flying.append(entry)
        elif step == "s" and flying:
            queue.settle(flying.pop(tenant % len(flying)), float(cost))
        elif step == "r" and flying:
            entry = flying.pop(tenant % len(flying))
            queue.give_back(entry, entry.call)
            waiting.add(entry.call.call_id)
        elif step == "f" and flying:
            queue.refund(flying.pop(tenant % len(flying)))
        elif step == "c" and flying:
            queue.charge_so_far(flying[tenant % len(flying)], float(cost))
        elif step == "x" and waiting:
            name = min(waiting)
            queue.remove(name)
            waiting.remove(name)
        queue.check_integrity()
    for entry in flying:
        queue.settle(entry)
    while (entry := queue.pick()) is not None:
        waiting.remove(entry.call.call_id)
        queue.settle(entry)
    assert not waiting
    queue.check_integrity()


@given(picks=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30)), min_size=60, max_size=90))
def test_a_class_that_waits_gets_its_floor_in_every_interval(picks: list[tuple[int, int, int]]) -> None:
    """Between any two instants, two classes that wait have had service over weight alike, within one call of each.

    So batch gets a twelfth of all cost, less one call of each class, however much of the others there is.
    """
    queue = FairQueue(FunctionCounters())
    for n, costs in enumerate(picks):
        for priority, cost in zip(Priority, costs, strict=True):
            push(queue, f"{priority}{n}", cost=float(cost), priority=priority)
    served = dict.fromkeys(Priority, 0.0)
    history = []
    while all(queue.of_class(priority).live for priority in Priority):
        history.append(dict(served))
        entry = queue.pick()
        assert entry is not None
        served[Priority(entry.call.priority)] += entry.cost / WEIGHTS[Priority(entry.call.priority)]
    bound = {priority: 30.0 / WEIGHTS[priority] for priority in Priority}
    for begun in history[:: len(history) // 5]:
        for end in history[len(history) // 2 :]:
            for one in Priority:
                for other in Priority:
                    ahead = (end[one] - begun[one]) - (end[other] - begun[other])
                    assert ahead <= bound[one] + bound[other] + 1e-9


@given(
    weights=st.tuples(st.integers(1, 16), st.integers(1, 16), st.integers(1, 16)),
    costs=st.lists(st.integers(1, 20), min_size=100, max_size=150),
)
def test_tenants_share_by_weight(weights: tuple[int, int, int], costs: list[int]) -> None:
    """While all wait, service over weight differs by at most one call of each over its weight."""
    queue = FairQueue(FunctionCounters())
    for n, cost in enumerate(costs):
        for tenant, weight in enumerate(weights):
            push(queue, f"{tenant} {n}", f"t{tenant}", cost=float(cost), weight=float(weight))
    served = [0.0, 0.0, 0.0]
    left = [len(costs)] * 3
    while all(left):
        entry = queue.pick()
        assert entry is not None
        tenant = int(entry.call.tenant[1:])
        left[tenant] -= 1
        served[tenant] += entry.cost / weights[tenant]
        queue.settle(entry)
    for one in range(3):
        for other in range(3):
            assert served[one] - served[other] <= 20 / weights[one] + 20 / weights[other] + 1e-9


def test_a_call_that_runs_on_is_charged_meanwhile(queue: FairQueue) -> None:
    """A stream with a low estimate does not keep its tenant's turn until it ends, and is charged once."""
    push(queue, "stream", "long", cost=1.0)
    stream = queue.pick()
    assert stream is not None
    for n in range(10):
        push(queue, f"l{n}", "long")
        push(queue, f"o{n}", "other")
    queue.charge_so_far(stream, 6.0)
    queue.charge_so_far(stream, 4.0)
    assert [name[0] for name in picks(queue, 5)] == ["o"] * 5
    queue.settle(stream, 2.0)
    assert stream.flow.counter.value == 2.0
    assert [name[0] for name in picks(queue, 3)] == ["l"] * 3


def test_what_a_tenants_calls_cost_is_the_estimate_of_its_next(queue: FairQueue) -> None:
    """The tenant's own mean is used, after the estimate of the caller and before the guess."""
    push(queue, "first", "dear", cost=1.0)
    entry = queue.pick()
    assert entry is not None
    queue.settle(entry, 40.0)
    assert queue.push(call("next", "dear", cost=0.0), cost=0.0, at=0.0, guess=3.0).cost == 40.0
    assert queue.push(call("said", "dear", cost=0.0), cost=5.0, at=0.0, guess=3.0).cost == 5.0
    assert queue.push(call("new", "other", cost=0.0), cost=0.0, at=0.0, guess=3.0).cost == 3.0


@given(costs=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=30, max_size=60))
def test_service_of_two_backlogged_tenants_stays_close(costs: list[tuple[int, int]]) -> None:
    """The VTC bound: with one call at a time, service differs by at most the largest call of each."""
    queue = FairQueue(FunctionCounters())
    for n, (a, b) in enumerate(costs):
        push(queue, f"a{n}", "a", cost=float(a))
        push(queue, f"b{n}", "b", cost=float(b))
    served: Counter[str] = Counter()
    left = Counter({"a": len(costs), "b": len(costs)})
    while all(left.values()):
        entry = queue.pick()
        assert entry is not None
        left[entry.call.tenant] -= 1
        served[entry.call.tenant] += int(entry.cost)
        queue.settle(entry)
        assert abs(served["a"] - served["b"]) <= 20


def test_the_weights_cover_every_class() -> None:
    """A class without a weight would have no turn."""
    assert set(WEIGHTS) == set(Priority)


def test_what_waits_is_known_by_class(queue: FairQueue) -> None:
    """How many, and since when the first does; removed ones and classes without calls are not there."""
    for number, (name, tenant, priority) in enumerate(
        [("a", "x", "batch"), ("b", "x", "batch"), ("c", "y", "batch"), ("d", "x", "interactive")]
    ):
        queue.push(call(name, tenant, priority=priority), cost=1.0, at=float(number))
    queue.remove("a")

    assert queue.waiting_by_class() == {"interactive": (1, 3.0), "batch": (2, 1.0)}
