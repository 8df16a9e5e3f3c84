"""Circuit breakers: what counts, when they open, and how they close again."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages import Outcome
from pilotlight_gateway.scheduler.breakers import (
    CONTAINER_FAILURES,
    FIRST_PAUSE_S,
    LATEST_MS,
    LONGEST_PAUSE_S,
    PROBE_S,
    VERSION_FAILURES,
    ContainerBreaker,
    State,
    Verdict,
    VersionBreaker,
    verdict,
)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.OK, Verdict.FINE),
        (Outcome.BAD_INPUT, Verdict.FINE),
        (Outcome.RAISED, Verdict.RAISED),
        (Outcome.BAD_OUTPUT, Verdict.RAISED),
        (Outcome.DIED, Verdict.LOST),
        (Outcome.TIMEOUT, Verdict.LOST),
        (Outcome.LOAD_FAILED, Verdict.LOST),
        (Outcome.CANCELLED, Verdict.NOTHING),
        (None, Verdict.NOTHING),
    ],
)
def test_what_an_end_says_of_where_it_ran(outcome: Outcome | None, expected: Verdict) -> None:
    """Every outcome means something or nothing."""
    assert verdict(outcome, 10.0, 5.0) is expected


def test_a_caller_with_little_patience_proves_nothing() -> None:
    """Only a call that was held for far longer than is usual was kept by its container."""
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, 1_000.0) is Verdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS - 1.0, 10.0) is Verdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, None) is Verdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, 10.0) is Verdict.LATE


def test_a_container_that_keeps_calls_is_broken_whatever_others_do() -> None:
    """Five calls in a row that were held far too long; one answer in between starts anew."""
    breaker = ContainerBreaker()
    for n in range(CONTAINER_FAILURES - 1):
        breaker.note(Verdict.LATE, str(n), float("-inf"), 1.0)
    breaker.note(Verdict.FINE, "x", 1.0, 1.0)
    for n in range(CONTAINER_FAILURES):
        assert breaker.state is State.CLOSED
        breaker.note(Verdict.LATE, str(n), float("-inf"), 1.0)
    assert breaker.state is State.OPEN


def lost(breaker: VersionBreaker, count: int, at: float, name: str = "c") -> None:
    for n in range(count):
        breaker.lost(f"{name}{n}", "exit code 139", at)


def test_a_version_whose_containers_are_lost_in_a_row_is_refused_with_the_time_of_the_probe() -> None:
    """503 `breaker_open`, why, and when to come again; one call is let in then, and the next ones wait for it."""
    breaker = VersionBreaker()
    lost(breaker, VERSION_FAILURES - 1, 10.0)
    breaker.admit("a", 10.0)
    assert breaker.lost("last", "exit code 139", 10.0)
    with pytest.raises(Unavailable) as caught:
        breaker.admit("a", 10.0 + FIRST_PAUSE_S / 4)
    assert caught.value.wire_code == "breaker_open"
    assert caught.value.retry_after == pytest.approx(FIRST_PAUSE_S * 3 / 4)
    assert "exit code 139" in caught.value.detail

    breaker.admit("probe", 10.0 + FIRST_PAUSE_S)
    breaker.admit("probe", 10.0 + FIRST_PAUSE_S)
    with pytest.raises(Unavailable):
        breaker.admit("other", 10.0 + FIRST_PAUSE_S)
    breaker.note(Verdict.FINE, "c9", 12.0)
    breaker.admit("other", 12.0)
    assert (breaker.state, breaker.failures) == (State.CLOSED, 0)


def test_a_container_counts_once_however_many_calls_die_with_it() -> None:
    """Sixty calls in one container are one failure, and so is a word that is repeated."""
    breaker = VersionBreaker()
    for _ in range(60):
        assert not breaker.note(Verdict.LOST, "c1", 1.0)
    assert (breaker.state, breaker.failures) == (State.CLOSED, 1)


def test_an_exception_is_an_answer() -> None:
    """A container that lives long enough to raise is not lost."""
    breaker = VersionBreaker()
    lost(breaker, VERSION_FAILURES - 1, 1.0)
    breaker.note(Verdict.RAISED, "c7", 1.0)
    lost(breaker, VERSION_FAILURES - 1, 1.0, "d")
    assert breaker.state is State.CLOSED


def test_a_probe_that_fails_makes_the_next_pause_longer() -> None:
    """Twice as long each time, up to a bound."""
    breaker, at = VersionBreaker(), 0.0
    lost(breaker, VERSION_FAILURES, at)
    pauses = []
    for n in range(8):
        pauses.append(breaker.until - at)
        at = breaker.until
        breaker.admit(f"probe{n}", at)
        assert breaker.lost(f"p{n}", "", at)
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_a_probe_that_is_not_heard_of_is_replaced() -> None:
    """At once if it was withdrawn, after a while if nobody knows."""
    breaker = VersionBreaker()
    lost(breaker, VERSION_FAILURES, 0.0)
    breaker.admit("one", 2.0)
    breaker.withdrawn("other", 2.1)
    with pytest.raises(Unavailable):
        breaker.admit("two", 2.2)
    breaker.withdrawn("one", 2.3)
    breaker.admit("two", 2.3)
    with pytest.raises(Unavailable):
        breaker.admit("three", 2.4)
    breaker.admit("three", 2.3 + PROBE_S)


@settings(deadline=None)  # the machine may be busy
@given(steps=st.lists(st.tuples(st.sampled_from("lfaw"), st.integers(0, 30)), max_size=120))
def test_a_breaker_never_stays_shut_for_longer_than_its_pause(steps: list[tuple[str, int]]) -> None:
    """In any history a call is let in once the longest pause and the wait for a probe are over."""
    breaker, at = VersionBreaker(), 0.0
    for number, (step, seconds) in enumerate(steps):
        at += seconds / 10.0
        if step == "l":
            breaker.note(Verdict.LOST, str(number), at)
        elif step == "f":
            breaker.note(Verdict.FINE, "", at)
        elif step == "w":
            breaker.withdrawn(breaker.probe, at)
        else:
            with suppress(Unavailable):
                breaker.admit(str(number), at)
        retry_after = breaker.refusal(at).retry_after
        assert retry_after is not None
        assert 0.0 <= retry_after <= LONGEST_PAUSE_S
    breaker.admit("at last", at + max(LONGEST_PAUSE_S, PROBE_S))
