"""What becomes due when."""

from __future__ import annotations

from pilotlight_gateway.cluster.timers import Timers


def test_what_is_due_comes_earliest_first_and_once() -> None:
    """An alarm rings once."""
    alarms = Timers()
    alarms.set("b", 2.0)
    alarms.set("a", 1.0)
    alarms.set("c", 9.0)
    assert alarms.due(5.0) == ["a", "b"]
    assert alarms.due(5.0) == []
    assert alarms.next() == 9.0


def test_an_alarm_can_be_moved_both_ways_and_cleared() -> None:
    """The last instant that was set counts."""
    alarms = Timers()
    alarms.set("a", 5.0)
    alarms.set("a", 1.0)
    assert alarms.next() == 1.0
    alarms.set("a", 7.0)
    assert alarms.due(6.0) == []
    alarms.clear("a")
    assert alarms.next() is None
    assert "a" not in alarms


def test_moving_an_alarm_for_ever_leaves_no_litter() -> None:
    """The heap stays in proportion to what is set."""
    alarms = Timers()
    for n in range(10_000):
        alarms.set("a", float(n))
    assert len(alarms._heap) < 200
    assert len(alarms) == 1
