"""How long a call that runs has still to go."""

from __future__ import annotations

from pilotlight_runtime.calls.run_times import SAMPLES, RunTimes


def test_it_goes_by_the_calls_that_took_longer() -> None:
    """Of another method nothing follows, nor of calls that had ended by now."""
    times = RunTimes()
    for seconds in (1.0, 2.0, 3.0, 10.0):
        times.observe("embed", seconds)

    assert times.remaining_s("embed", 0.5, 300.0) == 9.5
    assert times.remaining_s("embed", 4.0, 300.0) == 6.0
    assert times.remaining_s("other", 4.0, 300.0) == 4.0


def test_nine_of_ten_are_sure_enough() -> None:
    """One call in a hundred that took an hour does not decide for the others."""
    times = RunTimes()
    for seconds in [*[1.0] * 20, 3_600.0]:
        times.observe("", seconds)

    assert times.remaining_s("", 0.0, 300.0) == 1.0


def test_a_call_of_which_nothing_is_known_goes_on_for_as_long_again() -> None:
    """At its begin that is no time at all, and never beyond its timeout."""
    times = RunTimes()

    assert times.remaining_s("", 0.0, 300.0) == 0.0
    assert times.remaining_s("", 20.0, 300.0) == 20.0
    assert times.remaining_s("", 290.0, 300.0) == 10.0
    assert times.remaining_s("", 301.0, 300.0) == 0.0


def test_what_was_long_ago_is_forgotten() -> None:
    """The last calls say how long one takes now."""
    times = RunTimes()
    times.observe("", 100.0)
    for _ in range(SAMPLES):
        times.observe("", 1.0)

    assert times.remaining_s("", 0.0, 300.0) == 1.0
