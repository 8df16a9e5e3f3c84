"""The calls of a function come minute by minute."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.simulator.traffic.function_traffic import SHORTEST_S, CountedCalls, RecordedCalls


def test_counted_calls_come_in_their_minute() -> None:
    """As many as were counted, in order; the same seed has the same calls."""
    counted = CountedCalls({3: 50, 1: 2, 7: 0}, 2.0, "seed")

    assert [counted.next_minute(after) for after in (0, 2, 4)] == [1, 3, None]
    assert [counted.count(minute) for minute in (1, 2, 3, 7)] == [2, 0, 50, 0]
    calls = counted.calls(3)
    assert calls == sorted(calls)
    assert len(calls) == 50
    assert all(180 <= at < 240 and duration_s > 0 for at, duration_s in calls)
    assert sum(duration_s for _, duration_s in calls) / 50 == pytest.approx(2.0, rel=0.5)
    assert CountedCalls({3: 50}, 2.0, "seed").calls(3) == calls
    assert CountedCalls({3: 50}, 2.0, "other").calls(3) != calls


def test_recorded_calls_are_as_they_were() -> None:
    """A call that took no time takes a moment."""
    recorded = RecordedCalls([(70.0, 4.0), (1.0, 0.0), (119.0, 2.0)])

    assert recorded.calls(0) == [(1.0, SHORTEST_S)]
    assert recorded.calls(1) == [(70.0, 4.0), (119.0, 2.0)]
    assert (recorded.count(1), recorded.mean_s(1)) == (2, 3.0)
    assert (recorded.next_minute(0), recorded.next_minute(1), recorded.next_minute(2)) == (0, 1, None)
