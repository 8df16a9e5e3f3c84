"""How long a job that waits is told that it will."""

from __future__ import annotations

from pilotlight_gateway.jobs.start_rate import RECENT_S, STARTS, StartRate


def rate(*starts: float) -> StartRate:
    """A flow whose jobs started at these instants."""
    made = StartRate()
    for at in starts:
        made.started(at)
    return made


def test_a_job_waits_for_those_before_it_at_the_rate_of_the_last_starts() -> None:
    """Four starts in eight seconds: two seconds each."""
    assert rate(0.0, 2.0, 4.0, 6.0).wait(0, 8.0) == 2.0
    assert rate(0.0, 2.0, 4.0, 6.0).wait(9, 8.0) == 20.0


def test_of_fewer_than_two_recent_starts_nothing_follows() -> None:
    """One says no rate, and what is old says nothing about now."""
    assert rate().wait(0, 1.0) is None
    assert rate(0.0).wait(0, 1.0) is None
    assert rate(0.0, 1.0).wait(0, RECENT_S + 1.5) is None


def test_only_the_last_starts_count() -> None:
    """A flow that was slow and is fast is told as fast."""
    made = rate(*(float(at) for at in range(20)), *(20.0 + at / 10 for at in range(STARTS)))

    wait = made.wait(0, 20.0 + STARTS / 10)
    assert wait is not None
    assert round(wait, 6) == 0.1
