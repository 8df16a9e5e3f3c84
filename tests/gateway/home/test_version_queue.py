"""What a home keeps of one version: its edge, its shortage, its failed starts, and when it is forgotten."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState, Shortage
from pilotlight_gateway.home.call_admission import QueueLimits
from pilotlight_gateway.home.tier_queue import FunctionCounters
from pilotlight_gateway.home.version_demand import demand_of
from pilotlight_gateway.home.version_queue import (
    KEEP_IDLE_S,
    SHORTAGE_S,
    VersionQueue,
)
from tests.builders.calls import call, credit


def queue(at: float = 0.0) -> VersionQueue:
    made = VersionQueue("ver_1", QueueLimits(), 1, at)
    made.set_function("acme:app.fn", FunctionCounters())
    return made


def test_the_first_call_is_an_edge_and_the_last_has_a_demand() -> None:
    """The queue is busy while calls wait or run, and until a last demand is published."""
    version_queue = queue()
    assert (version_queue.edge, version_queue.busy, version_queue.tenant) == (False, False, "acme")
    entry = version_queue.calls.push(call("a"), cost=1.0, at=1.0)
    version_queue.arrivals += 1
    assert version_queue.edge
    told = demand_of(version_queue, "gw1", 7, {}, 3.0)
    assert (told.queued, told.oldest_ms, told.arrivals, told.edge, told.epoch) == (1, 2_000.0, 1, True, 7)
    assert (version_queue.edge, version_queue.busy) == (False, True)

    version_queue.calls.remove(entry.call_id)
    assert version_queue.busy
    assert demand_of(version_queue, "gw1", 7, {}, 4.0).queued == 0
    assert not version_queue.busy


def test_what_a_breaker_would_refuse_wants_no_container() -> None:
    """A container that would crash again is not started for calls that it would not get."""
    version_queue, shut = queue(), queue()
    for one in (version_queue, shut):
        one.pool.start_ms = 900.0
    with pytest.raises(Unavailable) as refused:
        version_queue.admit(call("a", remaining_ms=1.0), 1.0)
    assert refused.value.wire_code == "no_capacity"
    assert version_queue.edge
    for n in range(5):
        shut.losses.lost(f"c{n}", {"acme"}, "", 1.0)
    with pytest.raises(Unavailable) as caught:
        shut.admit(call("a", remaining_ms=1.0), 1.5)
    assert caught.value.wire_code == "breaker_open"
    assert not shut.edge


def test_a_shortage_is_the_reason_for_a_while() -> None:
    """It is repeated while it lasts, and `never_since` is the first of an unbroken row."""
    version_queue = queue()
    for at in (1.0, 2.0):
        version_queue.note_shortage(Shortage(version="ver_1", epoch=1, reason="no H100", never=True), at)
    assert (version_queue.shortage_now(2.0 + SHORTAGE_S), version_queue.never_since) == ("no H100", 1.0)
    assert version_queue.shortage_now(2.1 + SHORTAGE_S) == ""
    version_queue.note_shortage(Shortage(version="ver_1", epoch=1, reason="full"), 3.0)
    assert version_queue.never_since is None


def test_a_call_that_has_less_time_than_a_place_needs_is_refused_at_once() -> None:
    """With the controller's reason and the time until then; one with more time waits, and the place stays wanted."""
    version_queue = queue()
    version_queue.note_shortage(Shortage(version="ver_1", epoch=1, reason="all are taken", room_ms=30_000.0), 1.0)
    version_queue.admit(call("long", remaining_ms=40_000.0), 2.0)
    with pytest.raises(
        Unavailable, match="all are taken; a place is expected in 29 s, and the call has 10 s"
    ) as refused:
        version_queue.admit(call("short", remaining_ms=10_000.0), 2.0)
    assert refused.value.retry_after == pytest.approx(29.0)

    told = demand_of(version_queue, "gw1", 7, {}, 30.0)
    assert (told.refused, told.refused_calls) == (True, 1)
    assert demand_of(version_queue, "gw1", 7, {}, 31.0 + 7.0).refused
    assert not demand_of(version_queue, "gw1", 7, {}, 31.0 + 8.0).refused
    assert not version_queue.busy


@pytest.mark.parametrize("state", [ContainerState.LOADING, ContainerState.READY])
def test_a_container_that_is_there_or_starts_needs_no_place(state: ContainerState) -> None:
    """What was expected before does not count any more."""
    version_queue = queue()
    version_queue.note_shortage(Shortage(version="ver_1", epoch=1, reason="all are taken", room_ms=30_000.0), 1.0)
    version_queue.pool.update(credit("c1", 1, state=state), 1.0)

    assert version_queue.why_without_room(2.0, 10.0) is None


def test_two_failed_starts_in_a_row_are_due_to_the_function() -> None:
    """One may be due to its node, while another container is starting."""
    version_queue, error = queue(), RemoteError("ImportError", "no", "")
    for seq, container in ((1, "c1"), (2, "c2")):
        version_queue.pool.update(credit(container, seq, state=ContainerState.LOADING), 0.0)
    failed = [credit(container, 9, state=ContainerState.GONE, error=error) for container in ("c1", "c2")]
    credit_at = []
    for one in failed:
        version_queue.pool.update(one, 1.0)
        credit_at.append(version_queue.start_failure(one, 1.0) is not None)
    assert credit_at == [False, True]


def test_an_unused_version_is_forgotten() -> None:
    """It is kept for KEEP_IDLE_S with what was learnt."""
    version_queue = queue(10.0)
    assert not version_queue.is_forgettable(10.0 + KEEP_IDLE_S)
    assert version_queue.is_forgettable(10.1 + KEEP_IDLE_S)
