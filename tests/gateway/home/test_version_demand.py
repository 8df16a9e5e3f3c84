"""What a home tells of the load of a version: what waits, runs, was refused and was late, and when it is told."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import DeadlineExceeded, TooMuch, Unavailable
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.messages.demand import ClassLoad
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_gateway.home.home import DEMAND_EVERY_S, Home, QueueLimits
from pilotlight_gateway.home.version_demand import REFUSED_S
from tests.builders.calls import call, credit
from tests.gateway.home.granted_calls import granted
from tests.gateway.home.test_home_pressure import fill, heartbeat, run


@pytest.fixture
def home() -> Home:
    return Home(gateway="gw1", epoch=7)


def test_demand_is_published_at_once_then_each_quarter_second_then_once_more(home: Home) -> None:
    """The controller learns of the first call without delay, and of the end."""
    home.enqueue(call("a"), 0.0)
    home.grants(0.0)
    (edge,) = home.demand(0.0)
    assert (edge.edge, edge.queued, edge.arrivals, edge.epoch, edge.tenant) == (True, 1, 1, 7, "acme")
    home.enqueue(call("b"), 0.1)
    home.grants(0.1)
    assert home.demand(0.1) == []
    assert home.next_wake() == DEMAND_EVERY_S
    (again,) = home.demand(DEMAND_EVERY_S)
    assert (again.edge, again.queued, again.arrivals, again.oldest_ms) == (False, 2, 1, 250.0)

    home.on_credit(credit(slots=2), 0.3)
    home.grants(0.3)
    (running,) = home.demand(0.5)
    assert (running.queued, running.running) == (0, 2)
    home.done("a", "c1", 1, 0.6)
    home.done("b", "c1", 1, 0.6)
    home.grants(0.6)
    (last,) = home.demand(0.75)
    assert (last.queued, last.running) == (0, 0)
    assert last.service_ms == pytest.approx(300.0)
    assert home.demand(9.0) == []
    home.expire(9.0)
    assert home.next_wake() is None


def test_a_call_that_is_refused_for_lack_of_a_container_is_demand_for_one(home: Home) -> None:
    """However many are refused, the controller learns of one that waits, at once, until a container is ready."""
    home.on_credit(credit(seq=1, state=ContainerState.BINDING), 0.0)
    home.on_credit(credit(seq=2, timeline={"bind": 900.0}), 0.9)
    home.on_credit(credit(seq=3, state=ContainerState.GONE), 5.0)
    home.grants(5.0)
    home.demand(5.0)
    for n in range(50):
        with pytest.raises(Unavailable, match="ready in 900 ms, and the call has 300 ms"):
            home.enqueue(call(f"a{n}", remaining_ms=300.0), 20.0)
    assert home.is_awake
    home.grants(20.0)
    (edge,) = home.demand(20.0)
    assert (edge.edge, edge.queued, edge.refused, edge.waiting) == (True, 0, True, 1)
    (again,) = home.demand(20.25)
    assert (again.edge, again.waiting) == (False, 1)

    home.on_credit(credit("c2", 4), 20.4)
    home.grants(20.4)
    (last,) = home.demand(20.5)
    assert (last.refused, last.waiting) == (False, 0)
    home.enqueue(call("b", remaining_ms=300.0), 20.6)
    assert granted(home, 20.6) == [("b", "c2", 1)]


def test_a_refused_call_is_forgotten_if_nobody_comes_again(home: Home) -> None:
    """It is demand for as long as a container needs to be placed, not for ever."""
    home.on_credit(credit(seq=1, state=ContainerState.BINDING), 0.0)
    home.on_credit(credit(seq=2, timeline={"bind": 900.0}), 0.9)
    home.on_credit(credit(seq=3, state=ContainerState.GONE), 5.0)
    with pytest.raises(Unavailable):
        home.enqueue(call("a", remaining_ms=300.0), 20.0)
    told, at = [], 20.0
    while at < 30.0:
        home.grants(at)
        told += [demand.refused for demand in home.demand(at)]
        at += DEMAND_EVERY_S
    assert told == [True] * int(1 + REFUSED_S / DEMAND_EVERY_S) + [False]


def test_a_call_that_is_granted_at_once_is_no_edge(home: Home) -> None:
    """A warm function publishes its demand four times a second, not once per call."""
    home.on_credit(credit(slots=1), 0.0)
    told = []
    for n in range(1000):
        at = n / 1000.0
        home.enqueue(call(f"a{n}"), at)
        home.grants(at)
        told += home.demand(at)
        home.done(f"a{n}", "c1", 1, at + 0.0005)
        home.grants(at + 0.0005)
        told += home.demand(at + 0.0005)
    assert len(told) == 4
    assert not any(demand.edge for demand in told)
    assert sum(demand.arrivals for demand in told) >= 750


def test_a_demand_tells_what_waits_and_runs_by_class_and_for_how_long(home: Home) -> None:
    """Of running calls those that this home has granted; the function is the calls'."""
    home.on_credit(credit("c1", 1, "of a former home", slots=3), 0.0)
    home.enqueue(call("a"), 0.0)
    home.grants(0.0)
    home.enqueue(call("b", priority="batch"), 1.0)
    home.grants(1.0)
    for name, priority, at in (("c", "interactive", 2.0), ("d", "batch", 2.5), ("e", "batch", 3.0)):
        home.enqueue(call(name, priority=priority), at)
    home.on_credit(credit("c1", 2, "of a former home", "a", "b", slots=3), 4.0)
    home.grants(4.0)
    (told,) = home.demand(4.0)

    assert (told.function, told.queued, told.running, told.oldest_run_ms) == ("acme:app.fn", 3, 3, 4_000.0)
    assert told.classes == {
        "interactive": ClassLoad(queued=1, oldest_ms=2_000.0),
        "standard": ClassLoad(running=1),
        "batch": ClassLoad(queued=2, running=1, oldest_ms=1_500.0),
    }


def test_calls_that_were_refused_or_late_are_told_once() -> None:
    """As many as since the last word, each as one or the other."""
    home = Home(gateway="gw1", epoch=7, limits=QueueLimits(per_version=2))
    home.enqueue(call("a", remaining_ms=100.0), 0.0)
    home.enqueue(call("b"), 0.0)
    for name in ("c", "d"):
        with pytest.raises(TooMuch):
            home.enqueue(call(name), 0.0)
    with pytest.raises(DeadlineExceeded):
        home.enqueue(call("e", remaining_ms=0.0), 0.0)
    home.grants(0.0)
    (first,) = home.demand(0.0)
    assert (first.refused_calls, first.late, first.refused) == (2, 1, False)

    assert [dropped.call_id for dropped in home.expire(0.2)] == ["a"]
    home.grants(0.2)
    (second,) = home.demand(0.25)
    assert (second.refused_calls, second.late, second.queued) == (0, 1, 1)
    (third,) = home.demand(0.5)
    assert (third.refused_calls, third.late) == (0, 0)


def test_each_call_that_is_refused_for_lack_of_a_container_is_counted(home: Home) -> None:
    """Though all of them together want one."""
    home.on_credit(credit(seq=1, state=ContainerState.BINDING), 0.0)
    home.on_credit(credit(seq=2, timeline={"bind": 900.0}), 0.9)
    home.on_credit(credit(seq=3, state=ContainerState.GONE), 5.0)
    for n in range(3):
        with pytest.raises(Unavailable):
            home.enqueue(call(f"a{n}", remaining_ms=300.0), 20.0)
    home.grants(20.0)
    (edge,) = home.demand(20.0)

    assert (edge.refused_calls, edge.waiting, edge.edge) == (3, 1, True)


def test_a_picked_call_that_has_too_little_time_left_is_late(home: Home) -> None:
    """Its slot goes to another one."""
    home.on_credit(credit(), 0.0)
    for n in range(5):
        run(home, f"warm{n}", 0.0, 1.0)
    home.enqueue(call("holds"), 1.0)
    home.grants(1.0)
    home.enqueue(call("late", remaining_ms=2_400.0), 1.0)
    home.enqueue(call("next"), 1.0)
    home.on_credit(credit("c1", 2, "holds"), 3.0)
    home.done("holds", "c1", 1, 3.0, outcome=Outcome.OK)

    assert [grant.call_id for grant in home.grants(3.0)] == ["next"]
    (told,) = home.demand(3.0)
    assert (told.late, told.queued) == (1, 0)


def test_calls_that_lost_capacity_cannot_serve_are_late(home: Home) -> None:
    """As many as were shed."""
    heartbeat(home, 0.0, "c1", "c2", slots=4)
    for n in range(20):
        run(home, f"warm{n}", 0.0)
    fill(home, 1.0, 8, {"free": 40, "paid": 40}, 2.0)
    home.on_credit(credit("c2", 10**6, slots=4, state=ContainerState.GONE), 1.6)
    late, at = 0, 1.6
    while not late and at < 4.0:
        at += DEMAND_EVERY_S
        home.expire(at)
        home.grants(at)
        late = sum(told.late for told in home.demand(at))

    assert late == sum(home.statistics(at).shed.values()) >= 20
