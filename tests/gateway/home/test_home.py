"""The home: queueing, granting, counting slots, and demand for the controller."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import TooMuch, Unavailable
from pilotlight_core.model.messages.call_messages import MISCONFIGURED, Grant, Refusal, RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState, Shortage
from pilotlight_gateway.home.container_pool import PENDING_S, QUARANTINE_AFTER_S
from pilotlight_gateway.home.home import (
    DEMAND_EVERY_S,
    SWEEP_EVERY_S,
    Home,
    QueueLimits,
)
from pilotlight_gateway.home.version_queue import DONE_WITHIN_S, KEEP_IDLE_S, NEVER_FITS_S, REFUSED_S, SHUT_DOWN_S
from tests.builders.calls import call, credit


@pytest.fixture
def home() -> Home:
    return Home(gateway="gw1", epoch=7)


def granted(home: Home, at: float = 0.0) -> list[tuple[str, str, int]]:
    grants = home.grants(at)
    home.check_integrity()
    return [(grant.call_id, grant.container, grant.grant_number) for grant in grants]


def test_a_grant_names_everything_that_the_origin_needs(home: Home) -> None:
    """A grant names the call, the container and its node, the epoch, and its own number."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), 0.0)
    assert home.grants(0.0) == [
        Grant(call_id="a", container="c1", node="n1", instance="i1", epoch=7, grant_number=1, gateway="gw1", home="gw1")
    ]


def test_a_grant_names_who_gets_the_first_report_of_its_end(home: Home) -> None:
    """While calls wait the agent reports to the home; otherwise the report of the origin is soon enough."""
    home.on_credit(credit(slots=2), 0.0)
    for name in ("a", "b", "c"):
        home.enqueue(call(name, gateway="gw2"), 0.0)
    home.grants(0.0)
    home.enqueue(call("d", gateway="gw2"), 0.0)
    home.done("a", "c1", 1, 1.0)
    home.done("b", "c1", 1, 1.0)
    assert [(grant.call_id, grant.home) for grant in home.grants(1.0)] == [("c", "gw1"), ("d", "gw2")]


def test_calls_wait_for_a_free_slot(home: Home) -> None:
    """With one slot the next call is granted when the first has ended."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), 0.0)
    home.enqueue(call("b"), 0.0)
    assert granted(home) == [("a", "c1", 1)]
    home.done("a", "c1", 1, 0.1)
    assert granted(home) == [("b", "c1", 1)]


def test_calls_wait_for_the_first_container(home: Home) -> None:
    """From zero containers, the call is granted as soon as one is ready, and its grant says for how long none was."""
    home.enqueue(call("a"), 0.0)
    home.on_credit(credit(seq=1, state=ContainerState.BINDING), 0.2)
    assert granted(home, 0.2) == []
    home.on_credit(credit(seq=2, timeline={"bind": 30.0, "load": 500.0}), 0.8)
    (grant,) = home.grants(0.8)
    assert (grant.start_ms, grant.timeline) == (800.0, {"bind": 30.0, "load": 500.0})
    home.on_credit(credit("c2", 3), 0.9)
    home.enqueue(call("b"), 0.9)
    assert home.grants(0.9)[0].start_ms == 0.0


def test_enqueueing_again_is_no_second_call(home: Home) -> None:
    """Origins repeat themselves, but a call is queued and granted once."""
    home.enqueue(call("a"), 0.0)
    home.enqueue(call("a"), 0.1)
    home.on_credit(credit(slots=3), 0.1)
    assert granted(home, 0.1) == [("a", "c1", 1)]


def test_a_lost_grant_is_sent_again_when_its_origin_asks(home: Home) -> None:
    """It is the same grant, whose slot is reserved."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), 0.0)
    assert granted(home) == [("a", "c1", 1)]
    home.enqueue(call("a", admitted=True), 2.0)
    assert granted(home, 2.0) == [("a", "c1", 1)]


def test_a_grant_whose_slot_was_released_is_replaced(home: Home) -> None:
    """A call whose grant was lost for too long is queued again, and gets a higher number."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), 0.0)
    granted(home)
    home.on_credit(credit(seq=2), PENDING_S + 0.1)
    home.enqueue(call("a", admitted=True), PENDING_S + 0.2)
    assert granted(home, PENDING_S + 0.2) == [("a", "c1", 2)]


def test_a_call_that_is_run_again_replaces_its_old_grant(home: Home) -> None:
    """Its origin has seen grant 1, so the slot is free and the next grant is number 2."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), 0.0)
    granted(home)
    home.enqueue(call("a", grant_number=1, admitted=True), 1.0)
    assert granted(home, 1.0) == [("a", "c1", 2)]


def test_a_call_that_the_agent_holds_is_not_queued_again(home: Home) -> None:
    """A late repetition by an origin whose grant is in use changes nothing."""
    home.on_credit(credit(slots=2), 0.0)
    home.enqueue(call("a"), 0.0)
    granted(home)
    home.on_credit(credit("c1", 2, "a", slots=2), 0.1)
    home.enqueue(call("a", admitted=True), 0.2)
    assert granted(home, 0.2) == []


def test_a_refused_call_goes_elsewhere_first(home: Home) -> None:
    """It returns to the head of its flow, gets a higher number, and avoids the container that refused it."""
    home.on_credit(credit("c1", 1), 0.0)
    home.enqueue(call("a"), 0.0)
    home.enqueue(call("b"), 0.0)
    granted(home)
    home.refused(call("a", grant_number=1), "c1", Refusal.DRAINING, 7, 0.1)
    assert granted(home, 0.1) == []
    home.on_credit(credit("c2", 2), 0.2)
    assert granted(home, 0.2) == [("a", "c2", 2)]


def test_a_refused_call_that_this_home_does_not_know_is_queued(home: Home) -> None:
    """Its grant came from the former home, so it proves nothing of the container or of this epoch."""
    home.on_credit(credit("c1", 1), 0.0)
    home.enqueue(call("b"), 0.0)
    home.refused(call("a", grant_number=4), "c1", Refusal.STALE_EPOCH, 6, 0.1)
    assert granted(home, 0.1) == [("a", "c1", 5)]
    assert not home.deposed()


def test_what_a_newer_home_has_gets_nothing_from_this_one(home: Home) -> None:
    """Once its agent has seen a higher epoch, a container is granted nothing, by whatever message that comes."""
    home.on_credit(credit(epoch=8), 0.0)
    home.enqueue(call("a"), 0.0)
    assert granted(home) == []
    assert home.deposed() == {"ver_1"}

    home.on_credit(credit("d1", version="ver_2"), 0.0)
    home.enqueue(call("b", version="ver_2"), 0.0)
    assert granted(home) == [("b", "d1", 1)]
    home.refused(call("b", version="ver_2", grant_number=1), "d1", Refusal.STALE_EPOCH, 7, 0.1)
    home.on_credit(credit("d1", 2, version="ver_2", epoch=8), 0.2)
    assert granted(home, 0.2) == []


def test_one_agent_deposes_no_home(home: Home) -> None:
    """An epoch that no home has shuts its own container; others take the version's calls, and its demand is told."""
    home.on_credit(credit("evil", 1, node="n2", epoch=2**60), 0.0)
    home.on_credit(credit("c1", 1), 0.0)
    home.enqueue(call("a"), 0.0)
    home.enqueue(call("b"), 0.0)

    assert granted(home) == [("a", "c1", 1)]
    assert [demand.queued for demand in home.demand(9.0)] == [1]


def test_a_cancelled_call_is_never_granted(home: Home) -> None:
    """`cancel` returns whether it was in time."""
    home.enqueue(call("a"), 0.0)
    assert home.cancel("a")
    assert not home.cancel("a")
    home.on_credit(credit(), 0.0)
    assert granted(home) == []


def test_a_silent_container_is_not_used(home: Home) -> None:
    """It is quarantined until its next credit."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), QUARANTINE_AFTER_S + 0.5)
    assert granted(home, QUARANTINE_AFTER_S + 0.5) == []
    home.on_credit(credit(seq=2), QUARANTINE_AFTER_S + 1.0)
    assert granted(home, QUARANTINE_AFTER_S + 1.0) == [("a", "c1", 1)]


def test_a_credit_repairs_a_lost_end(home: Home) -> None:
    """A call that is no longer held has ended, even if no end was reported; its charge is settled later."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), 0.0)
    home.enqueue(call("b"), 0.0)
    granted(home)
    home.on_credit(credit("c1", 2, "a"), 0.5)
    home.on_credit(credit("c1", 3), 1.0)
    assert granted(home, 1.0) == [("b", "c1", 1)]
    assert home.statistics(1.0).granted == 2
    home.expire(1.0 + DONE_WITHIN_S)
    assert home.statistics(1.0).granted == 1


def test_an_end_may_leave_the_slot_in_use(home: Home) -> None:
    """After an answer that was dropped from a running batch, the slot is free only when the batch ends."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), 0.0)
    home.enqueue(call("b"), 0.0)
    granted(home)
    home.on_credit(credit("c1", 2, "a"), 0.1)
    home.done("a", "c1", 1, 0.2, frees=False)
    assert granted(home, 0.2) == []
    home.on_credit(credit("c1", 3), 0.3)
    assert granted(home, 0.3) == [("b", "c1", 1)]


def test_the_end_of_another_grant_frees_nothing(home: Home) -> None:
    """A late end of grant 1 must not free the slot of grant 2."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a", grant_number=1), 0.0)
    home.enqueue(call("b"), 0.0)
    assert granted(home) == [("a", "c1", 2)]
    home.done("a", "c1", 1, 0.1)
    home.done("a", "c9", 2, 0.1)
    assert granted(home, 0.1) == []


def test_a_restarted_agent_holds_no_former_calls(home: Home) -> None:
    """A new incarnation replaces the old one, whose late credits are ignored."""
    home.on_credit(credit("c1", 9, "x"), 0.0)
    home.node_seen("n1", "i2", 1.0)
    assert home.statistics(1.0).containers == 0
    home.on_credit(credit("c1", 10), 1.1)
    assert home.statistics(1.1).containers == 0
    home.on_credit(credit("c1", 1, instance="i2"), 1.2)
    home.enqueue(call("a"), 1.2)
    assert granted(home, 1.2) == [("a", "c1", 1)]


def test_the_calls_of_a_lost_gateway_leave_the_queue(home: Home) -> None:
    """Their callers are gone with it."""
    home.enqueue(call("a", gateway="gw1"), 0.0)
    home.enqueue(call("b", gateway="gw2"), 0.0)
    assert home.gateway_gone("gw2") == ["b"]
    assert home.statistics(0.0).queued == 1


def test_a_call_leaves_the_queue_at_its_deadline_with_the_reason(home: Home) -> None:
    """The error contains the shortage that the controller has reported."""
    home.enqueue(call("a", remaining_ms=1_000.0), 0.0)
    home.on_shortage(Shortage(version="ver_1", epoch=1, reason="it asks for H100"), 0.5)
    assert home.expire(0.9) == []
    (dropped,) = home.expire(1.0)
    assert (dropped.call_id, dropped.gateway, dropped.code) == ("a", "gw1", "deadline_exceeded")
    assert dropped.detail == "It waited 1.0 s for a container: it asks for H100."
    home.check_integrity()


def test_a_call_that_fits_nowhere_is_refused_after_a_while(home: Home) -> None:
    """The shortage must last for ten seconds without a pause, as a node may restart."""
    never = Shortage(version="ver_1", epoch=1, reason="the fleet has no GPU", never=True)
    home.on_shortage(never, 0.0)
    home.enqueue(call("a"), 0.0)
    for second in range(int(NEVER_FITS_S) - 2):
        home.on_shortage(never, float(second))
    home.on_shortage(msgspec.structs.replace(never, never=False), NEVER_FITS_S - 1.0)
    for second in range(int(NEVER_FITS_S)):
        home.on_shortage(never, NEVER_FITS_S + second)
        assert home.expire(NEVER_FITS_S + second) == []
    home.on_shortage(never, 2 * NEVER_FITS_S)
    (dropped,) = home.expire(2 * NEVER_FITS_S)
    assert (dropped.code, dropped.detail) == ("no_capacity", "the fleet has no GPU")


def test_calls_of_a_version_that_is_shut_down_are_refused_soon(home: Home) -> None:
    """A second is enough for a controller that has not read yet that it was deployed again."""
    down = Shortage(version="ver_1", epoch=1, reason="its app is stopped", never=True, shut_down=True)
    home.enqueue(call("a"), 0.0)
    home.on_shortage(down, 0.0)
    home.on_shortage(down, SHUT_DOWN_S - 0.1)
    assert home.expire(SHUT_DOWN_S - 0.1) == []

    home.on_shortage(down, SHUT_DOWN_S)

    (dropped,) = home.expire(SHUT_DOWN_S)
    assert (dropped.code, dropped.detail) == ("no_capacity", "its app is stopped")


def test_what_the_operator_has_to_mend_is_not_told_as_the_functions_fault(home: Home) -> None:
    """503 instead of 500, for later, without what the node says: the caller may be of another tenant."""
    error = RemoteError(MISCONFIGURED, "could not be started: secret.py is not in the blob store")
    home.enqueue(call("a"), 0.0)
    home.on_credit(credit(seq=1, state=ContainerState.LOADING), 0.1)
    home.on_credit(credit(seq=2, state=ContainerState.GONE, error=error, reason=error.message), 0.2)

    (dropped,) = home.expire(0.2)
    assert (dropped.code, dropped.error, dropped.retry_after) == ("misconfigured", None, 30.0)
    assert "its operator finds the reason" in dropped.detail
    assert "secret" not in dropped.detail
    home.check_integrity()


def test_a_function_that_cannot_be_loaded_fails_its_waiting_calls(home: Home) -> None:
    """They fail at once with the traceback, as the next container would fail alike."""
    error = RemoteError("ImportError", "no module named numpi", "Traceback …")
    home.enqueue(call("a"), 0.0)
    home.on_credit(credit(seq=1, state=ContainerState.LOADING), 0.1)
    home.on_credit(credit(seq=2, state=ContainerState.GONE, error=error, reason="cannot load"), 0.2)
    (dropped,) = home.expire(0.2)
    assert (dropped.code, dropped.error) == ("load_failed", error)
    home.check_integrity()


def test_calls_wait_for_a_second_start_but_not_for_a_third(home: Home) -> None:
    """One failure may be due to the node, but a function that fails twice in a row is not started again."""
    error = RemoteError("ImportError", "no module named numpi")
    home.enqueue(call("a"), 0.0)
    home.on_credit(credit("c2", 1, state=ContainerState.LOADING), 0.1)
    home.on_credit(credit("c1", 2, state=ContainerState.GONE, error=error), 0.2)
    assert home.expire(0.2) == []
    home.on_credit(credit("c3", 3, state=ContainerState.LOADING), 0.3)
    home.on_credit(credit("c2", 4, state=ContainerState.GONE, error=error), 0.4)
    assert [dropped.call_id for dropped in home.expire(0.4)] == ["a"]


def test_a_failed_start_beside_a_ready_container_fails_no_call(home: Home) -> None:
    """One bad node is not a bad function."""
    home.on_credit(credit("c1", 1, "x"), 0.0)
    home.enqueue(call("a"), 0.0)
    error = RemoteError("OSError", "disk")
    home.on_credit(credit("c2", 2, state=ContainerState.GONE, error=error), 0.2)
    assert home.expire(0.2) == []


def test_limits_refuse_new_calls_but_never_those_that_come_back() -> None:
    """A call that was admitted once is refused neither by a later home nor after a retry."""
    home = Home(gateway="gw1", epoch=1, limits=QueueLimits(per_version=1))
    home.enqueue(call("a"), 0.0)
    with pytest.raises(TooMuch):
        home.enqueue(call("b"), 0.0)
    home.enqueue(call("c", admitted=True), 0.0)
    home.refused(call("d", grant_number=1), "c1", Refusal.NO_SLOT, 1, 0.0)
    assert home.statistics(0.0).queued == 3
    home.check_integrity()


def test_the_estimate_is_learnt_from_calls_that_ended(home: Home) -> None:
    """A call without an estimate is charged the recent cost of its version, and the wait follows its service time."""
    home.on_credit(credit(), 0.0)
    for n in range(3):
        home.enqueue(call(f"a{n}", cost=0.0), float(n))
        granted(home, float(n))
        home.done(f"a{n}", "c1", 1, n + 0.5, cost=40.0)
    home.enqueue(call("x", cost=0.0), 3.0)
    home.enqueue(call("y", cost=0.0), 3.0)
    granted(home, 3.0)
    with pytest.raises(TooMuch):
        home.enqueue(call("z", remaining_ms=300.0), 3.0)


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


def test_what_is_unused_for_long_is_forgotten(home: Home) -> None:
    """A home forgets unused versions, and what it learnt of them after an hour."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), 0.0)
    granted(home)
    home.done("a", "c1", 1, 0.5)
    home.on_credit(credit(seq=2, state=ContainerState.GONE), 1.0)
    home.demand(1.0)
    home.expire(100.0)
    assert home.statistics(100.0).versions == 1
    home.expire(KEEP_IDLE_S + 100.0)
    home.expire(KEEP_IDLE_S + 100.0 + SWEEP_EVERY_S)
    assert home.statistics(0.0).versions == 0
    home.check_integrity()
