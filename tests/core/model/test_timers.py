"""What becomes due when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.timers import Timers


def test_what_is_due_comes_earliest_first_and_once() -> None:
    """A timer is given once."""
    timers = Timers[str]()
    timers.set("b", 2.0)
    timers.set("a", 1.0)
    timers.set("c", 9.0)
    assert timers.due(5.0) == ["a", "b"]
    assert timers.due(5.0) == []
    assert timers.next() == 9.0


def test_a_timer_can_be_moved_both_ways_and_cleared() -> None:
    """The last instant that was set counts."""
    timers = Timers[str]()
    timers.set("a", 5.0)
    timers.set("a", 1.0)
    assert timers.next() == 1.0
    timers.set("a", 7.0)
    assert timers.due(6.0) == []
    timers.clear("a")
    assert timers.next() is None
    assert "a" not in timers


def test_moving_a_timer_for_ever_leaves_no_litter() -> None:
    """The heap stays in proportion to what is set."""
    timers = Timers[str]()
    for n in range(10_000):
        timers.set("a", float(n))
    assert len(timers._heap) < 200
    assert len(timers) == 1


def test_they_are_popped_one_by_one() -> None:
    """The one that has been due for longest first, of several at one instant the least key; none before its time."""
    timers = Timers[tuple[int, str]]()
    for key in ((2, "a"), (1, "b"), (3, "c")):
        timers.set(key, 5.0)
    timers.set((9, "first"), 4.0)

    assert timers.pop(3.9) is None
    assert [timers.pop(5.0) for _ in range(3)] == [(9, "first"), (1, "b"), (2, "a")]
    assert list(timers) == [(3, "c")]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 20))), max_size=60))
def test_they_are_what_a_plain_dictionary_says(steps: list[tuple[str, int | None]]) -> None:
    """Whatever is set, moved and cleared, in any order."""
    timers, plain = Timers[str](), dict[str, float]()
    for at, (key, until) in enumerate(steps):
        if until is None:
            timers.clear(key)
            plain.pop(key, None)
        else:
            timers.set(key, float(at + until))
            plain[key] = float(at + until)
        assert timers.next() == min(plain.values(), default=None)
        due = sorted((when, name) for name, when in plain.items() if when <= at)
        assert timers.due(float(at)) == [name for _, name in due]
        for _, name in due:
            del plain[name]
        assert dict.fromkeys(timers) == dict.fromkeys(plain)
        assert len(timers) == len(plain)
