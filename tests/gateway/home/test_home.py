"""The home: queueing, granting, and counting slots."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.messages.call_messages import Grant, Refusal
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_gateway.home.container_pool import QUARANTINE_AFTER_S
from pilotlight_gateway.home.home import (
    SWEEP_EVERY_S,
    Home,
    QueueLimits,
)
from pilotlight_gateway.home.version_queue import KEEP_IDLE_S
from tests.builders.calls import call, credit
from tests.gateway.home.granted_calls import granted


@pytest.fixture
def home() -> Home:
    return Home(gateway="gw1", epoch=7)


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


def test_a_silent_container_is_not_used(home: Home) -> None:
    """It is quarantined until its next credit."""
    home.on_credit(credit(), 0.0)
    home.enqueue(call("a"), QUARANTINE_AFTER_S + 0.5)
    assert granted(home, QUARANTINE_AFTER_S + 0.5) == []
    home.on_credit(credit(seq=2), QUARANTINE_AFTER_S + 1.0)
    assert granted(home, QUARANTINE_AFTER_S + 1.0) == [("a", "c1", 1)]


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


def test_a_new_version_begins_with_what_its_function_took(home: Home) -> None:
    """So a first call that cannot be in time is refused as one of the version before would be."""
    home.on_credit(credit("of-v1", version="v1"), 0.0)
    home.enqueue(call("a", version="v1", function="acme:shop.greet"), 0.0)
    granted(home, 0.0)
    home.done("a", "of-v1", 1, 4.0, cost=40.0)

    home.on_credit(credit("of-v2", version="v2"), 4.0)
    home.enqueue(call("b", version="v2", function="acme:shop.greet"), 4.0)
    granted(home, 4.0)
    with pytest.raises(TooMuch):
        home.enqueue(call("c", version="v2", function="acme:shop.greet", remaining_ms=300.0), 4.0)
    home.enqueue(call("d", version="v3", function="acme:shop.other", remaining_ms=300.0), 4.0)


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
