"""How many requests an API takes at a time."""

from __future__ import annotations

import pytest

from pilotlight.upstream.capacity_limit import FIRST, LEAST_PAUSE_S, LONGEST_PAUSE_S, MOST_PAUSE_S, CapacityLimit


def rounds(limit: CapacityLimit, count: int, at: float = 0.0) -> list[int]:
    """How many were sent in each of so many rounds, all of which were answered."""
    sent = []
    for _ in range(count):
        room = limit.room(at)
        for _ in range(room):
            limit.send()
        for _ in range(room):
            limit.on_answer()
        sent.append(room)
    return sent


def test_it_doubles_until_the_first_refusal() -> None:
    """Up to the most; then it adds one per round."""
    limit = CapacityLimit(20)
    assert rounds(limit, 5) == [FIRST, 8, 16, 20, 20]
    limit.send()
    limit.on_refusal(0.0, 1.0, 0.0)
    assert limit.running == 0
    assert rounds(limit, 3, at=2.0) == [10, 10, 11]


def test_requests_of_one_round_halve_it_once() -> None:
    """Those that were sent before it was halved say nothing new."""
    limit = CapacityLimit(64)
    limit.limit = 16.0
    for _ in range(8):
        limit.send()
    for _ in range(8):
        limit.on_refusal(0.0, 1.0, None)
    assert (limit.limit, limit.running) == (8.0, 0)
    limit.send()
    limit.on_refusal(2.0, 3.0, None)
    assert limit.limit == 4.0
    for _ in range(10):
        limit.send()
        limit.on_refusal(100.0, 101.0, None)
    assert limit.limit >= 1.0


def test_nothing_is_sent_before_the_api_wants_it() -> None:
    """Retry-After counts, within a bound; without one there is a short pause."""
    limit = CapacityLimit(8)
    for retry_after, pause in ((2.5, 2.5), (None, LEAST_PAUSE_S), (1e9, LONGEST_PAUSE_S), (-1.0, 0.0)):
        limit = CapacityLimit(8)
        limit.send()
        limit.on_refusal(0.0, 10.0, retry_after)
        assert limit.pause_s(10.0) == pytest.approx(pause)
        assert (limit.room(10.0) == 0) is (pause > 0)
        assert limit.room(10.0 + pause) == 2


def test_a_failure_says_nothing_of_capacity() -> None:
    """It only ends."""
    limit = CapacityLimit(8)
    limit.send()
    assert limit.room(0.0) == 3
    limit.on_failure()
    assert (limit.room(0.0), limit.limit) == (4, FIRST)


def test_refusals_without_a_time_are_further_and_further_apart() -> None:
    """By rounds, within a bound; an answer ends that, and a time that the API names is taken as it is."""
    limit, at, pauses = CapacityLimit(8), 0.0, []
    for _ in range(6):
        limit.send()
        limit.send()
        limit.on_refusal(at, at + 1, None)
        limit.on_refusal(at, at + 1, None)
        pauses.append(limit.pause_s(at + 1))
        at += 10.0
    assert pauses == pytest.approx([LEAST_PAUSE_S, 0.2, 0.8, 3.2, MOST_PAUSE_S, MOST_PAUSE_S])
    limit.send()
    limit.on_answer()
    for retry_after, pause in ((None, LEAST_PAUSE_S), (2.0, 2.0)):
        at += 10.0
        limit.send()
        limit.on_refusal(at, at + 1, retry_after)
        assert limit.pause_s(at + 1) == pytest.approx(pause)
