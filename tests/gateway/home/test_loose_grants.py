"""Grants whose end is not told."""

from __future__ import annotations

import pytest

from pilotlight_gateway.home.call_admission import QueueLimits
from pilotlight_gateway.home.counters import FunctionCounters
from pilotlight_gateway.home.loose_grants import DONE_WITHIN, GrantBook
from pilotlight_gateway.home.version_queue import OutstandingGrant, VersionQueue
from tests.builders.calls import call, grant


@pytest.fixture
def book() -> GrantBook:
    """Three calls that run, two of them in one container."""
    desk = VersionQueue("ver_1", QueueLimits(), 0.0)
    desk.name("acme:app.f", FunctionCounters())
    made = GrantBook()
    for name, container in (("a", "c1"), ("b", "c1"), ("c", "c2")):
        entry = desk.queue.push(call(name), cost=1.0, guess=0.0, at=0.0)
        made.enter(OutstandingGrant(desk, entry, grant(call_id=name, container=container), 0.0))
    return made


def test_what_nobody_tells_the_end_of_is_struck_out_in_time(book: GrantBook) -> None:
    """In the order in which the slots became free, each once."""
    book.loosen(["b"], 1.0)
    book.loosen(["a", "b", "unknown"], 2.0)

    assert not list(book.take_untold(0.9 + DONE_WITHIN))
    assert [granted.grant.call_id for granted in book.take_untold(1.0 + DONE_WITHIN)] == ["b"]
    assert [granted.grant.call_id for granted in book.take_untold(2.0 + DONE_WITHIN)] == ["a"]
    assert set(book.by_call) == {"c"}
    book.check_integrity()


def test_only_what_is_in_the_container_that_spoke_becomes_loose(book: GrantBook) -> None:
    """A call that has meanwhile been granted elsewhere holds its new slot."""
    book.loosen(["a", "c"], 1.0, "c1")
    assert (book.is_loose("a"), book.is_loose("c")) == (True, False)


def test_what_is_told_in_time_is_loose_no_more(book: GrantBook) -> None:
    """Its end is counted once."""
    book.loosen(["a"], 1.0)
    book.take(book.by_call["a"])
    assert not book.is_loose("a")
    assert not list(book.take_untold(9.0 + DONE_WITHIN))
    assert len(book) == 2
