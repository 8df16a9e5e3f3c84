"""Grants that have not ended: repeated, replaced, released, and expired."""

from __future__ import annotations

import pytest

from pilotlight_gateway.home.container_pool import PENDING_S
from pilotlight_gateway.home.grant_book import DONE_WITHIN_S, GrantBook
from pilotlight_gateway.home.home import (
    Home,
    QueueLimits,
)
from pilotlight_gateway.home.tier_queue import FunctionCounters
from pilotlight_gateway.home.version_queue import VersionQueue
from tests.builders.calls import call, credit
from tests.gateway.home.granted_calls import granted


@pytest.fixture
def home() -> Home:
    return Home(gateway="gw1", epoch=7)


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


@pytest.fixture
def book() -> GrantBook:
    """Three calls that run, two of them in one container."""
    version_queue = VersionQueue("ver_1", QueueLimits(), 1, 0.0)
    version_queue.set_function("acme:app.f", FunctionCounters())
    made = GrantBook()
    for seq, (container, slots) in enumerate((("c1", 2), ("c2", 1)), 1):
        version_queue.pool.update(credit(container, seq, slots=slots), 0.0)
    for name, container in (("a", "c1"), ("b", "c1"), ("c", "c2")):
        version_queue.calls.push(call(name), cost=1.0, guess=0.0, at=0.0)
        entry, pooled = version_queue.calls.pick(), version_queue.pool.get(container)
        assert entry is not None
        assert pooled is not None
        version_queue.grant(entry, pooled, "gw1", 1, 0.0)
        made.by_call[name] = entry
    return made


def test_grants_without_an_end_expire(book: GrantBook) -> None:
    """They expire in the order of their releases, each once."""
    book.release(["b"], 1.0)
    book.release(["a", "b", "unknown"], 2.0)

    assert not list(book.take_expired(0.9 + DONE_WITHIN_S))
    assert [granted.grant.call_id for granted in book.take_expired(1.0 + DONE_WITHIN_S)] == ["b"]
    assert [granted.grant.call_id for granted in book.take_expired(2.0 + DONE_WITHIN_S)] == ["a"]
    assert set(book.by_call) == {"c"}
    book.check_integrity()


def test_a_release_by_one_container_keeps_grants_to_others(book: GrantBook) -> None:
    """A call that has meanwhile been granted elsewhere holds its new slot."""
    book.release(["a", "c"], 1.0, "c1")
    assert list(book.released) == ["a"]


def test_a_grant_that_ends_in_time_does_not_expire(book: GrantBook) -> None:
    """Its end is counted once."""
    book.release(["a"], 1.0)
    book.remove(book.by_call["a"])
    assert not book.released
    assert not list(book.take_expired(9.0 + DONE_WITHIN_S))
    assert len(book.by_call) == 2
