"""Which calls go in the next request."""

from __future__ import annotations

from pilotlight.upstream.waiting_items import WaitingItems


def test_a_request_goes_when_it_is_full_or_the_first_has_waited() -> None:
    """In the order of the calls."""
    waiting = WaitingItems[str](2, 0.5)
    assert waiting.due_in(0.0) is None
    waiting.add("a", 0.0)
    assert (waiting.due_in(0.1), waiting.take(0.1)) == (0.4, [])
    waiting.add("b", 0.2)
    waiting.add("c", 0.2)
    assert waiting.due_in(0.2) == 0.0
    assert waiting.take(0.2) == ["a", "b"]
    assert waiting.take(0.2) == []
    assert waiting.take(0.7) == ["c"]


def test_without_batches_nothing_waits() -> None:
    """Each call is a request."""
    waiting = WaitingItems[str](1, 0.0)
    waiting.add("a", 0.0)
    waiting.add("b", 0.0)
    assert waiting.take(0.0) == ["a"]
    assert len(waiting) == 1


def test_what_has_not_run_goes_first_again() -> None:
    """And who left is not sent."""
    waiting = WaitingItems[str](3, 5.0)
    waiting.add("c", 0.0)
    waiting.add_again(["a", "b"], 0.0)
    waiting.add("d", 0.0)
    waiting.discard("b")
    assert waiting.take(0.0) == ["a", "c", "d"]
