"""What a home keeps of one version: its demand, its shortage, its outstanding grants, and when it is forgotten."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.agent_messages import ContainerState, RemoteError, Shortage
from pilotlight_gateway.home.call_admission import QueueLimits
from pilotlight_gateway.home.tier_queue import FunctionCounters
from pilotlight_gateway.home.version_queue import (
    DONE_WITHIN_S,
    KEEP_IDLE_S,
    SHORTAGE_S,
    GrantBook,
    OutstandingGrant,
    VersionQueue,
)
from tests.builders.calls import call, credit, grant


def queue(at: float = 0.0) -> VersionQueue:
    made = VersionQueue("ver_1", QueueLimits(), at)
    made.set_function("acme:app.fn", FunctionCounters())
    return made


def test_the_controller_hears_of_the_first_call_at_once_and_of_the_last() -> None:
    """While calls wait or run it is busy; then it has one more word to say."""
    version_queue = queue()
    assert (version_queue.edge, version_queue.busy, version_queue.tenant) == (False, False, "acme")
    entry = version_queue.calls.push(call("a"), cost=1.0, at=1.0)
    version_queue.arrivals += 1
    assert version_queue.edge
    told = version_queue.demand("gw1", 7, 3.0)
    assert (told.queued, told.oldest_ms, told.arrivals, told.edge, told.epoch) == (1, 2_000.0, 1, True, 7)
    assert (version_queue.edge, version_queue.busy) == (False, True)

    version_queue.calls.remove(entry.call_id)
    assert version_queue.busy
    assert version_queue.demand("gw1", 7, 4.0).queued == 0
    assert not version_queue.busy


def test_a_shortage_is_the_reason_for_a_while() -> None:
    """It is repeated as long as it lasts; that nothing will ever fit counts from when it was said first."""
    version_queue = queue()
    for at in (1.0, 2.0):
        version_queue.note_shortage(Shortage(version="ver_1", epoch=1, reason="no H100", never=True), at)
    assert (version_queue.shortage_now(2.0 + SHORTAGE_S), version_queue.never_since) == ("no H100", 1.0)
    assert version_queue.shortage_now(2.1 + SHORTAGE_S) == ""
    version_queue.note_shortage(Shortage(version="ver_1", epoch=1, reason="full"), 3.0)
    assert version_queue.never_since is None


def test_two_failed_starts_in_a_row_are_the_functions() -> None:
    """One may be its node's, while another container is on its way."""
    version_queue, error = queue(), RemoteError("ImportError", "no", "")
    for seq, container in ((1, "c1"), (2, "c2")):
        version_queue.pool.update(credit(container, seq, state=ContainerState.LOADING), 0.0)
    failed = [credit(container, 9, state=ContainerState.GONE, error=error) for container in ("c1", "c2")]
    credit_at = []
    for one in failed:
        version_queue.pool.update(one, 1.0)
        credit_at.append(version_queue.cannot_load(one, 1.0))
    assert credit_at == [False, True]


def test_a_version_that_nobody_uses_is_forgotten() -> None:
    """Not sooner than what was learnt of it is worth."""
    version_queue = queue(10.0)
    assert not version_queue.is_forgettable(10.0 + KEEP_IDLE_S)
    assert version_queue.is_forgettable(10.1 + KEEP_IDLE_S)


@pytest.fixture
def book() -> GrantBook:
    """Three calls that run, two of them in one container."""
    version_queue = VersionQueue("ver_1", QueueLimits(), 0.0)
    version_queue.set_function("acme:app.f", FunctionCounters())
    made = GrantBook()
    for name, container in (("a", "c1"), ("b", "c1"), ("c", "c2")):
        entry = version_queue.calls.push(call(name), cost=1.0, guess=0.0, at=0.0)
        made.enter(OutstandingGrant(version_queue, entry, grant(call_id=name, container=container), 0.0))
    return made


def test_what_nobody_tells_the_end_of_is_struck_out_in_time(book: GrantBook) -> None:
    """In the order in which the slots became free, each once."""
    book.release(["b"], 1.0)
    book.release(["a", "b", "unknown"], 2.0)

    assert not list(book.take_expired(0.9 + DONE_WITHIN_S))
    assert [granted.grant.call_id for granted in book.take_expired(1.0 + DONE_WITHIN_S)] == ["b"]
    assert [granted.grant.call_id for granted in book.take_expired(2.0 + DONE_WITHIN_S)] == ["a"]
    assert set(book.by_call) == {"c"}
    book.check_integrity()


def test_only_what_is_in_the_container_that_spoke_becomes_loose(book: GrantBook) -> None:
    """A call that has meanwhile been granted elsewhere holds its new slot."""
    book.release(["a", "c"], 1.0, "c1")
    assert (book.is_released("a"), book.is_released("c")) == (True, False)


def test_what_is_told_in_time_is_loose_no_more(book: GrantBook) -> None:
    """Its end is counted once."""
    book.release(["a"], 1.0)
    book.take(book.by_call["a"])
    assert not book.is_released("a")
    assert not list(book.take_expired(9.0 + DONE_WITHIN_S))
    assert len(book) == 2
