"""A job ends once, starts as often as it may, and waits no longer than it has time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import CODES, BadInput, FunctionRaised
from pilotlight_core.model.ids import parse_call_id
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import (
    FailurePoint,
    JobError,
    JobFailureReason,
    JobRecord,
    JobState,
    RunnerIdentity,
)
from tests.builders.jobs import job

HERE, THERE = RunnerIdentity("one", "one-a"), RunnerIdentity("two", "two-a")
ERROR = JobError(code="function_raised", detail="ValueError: no")


def running(**more: Any) -> JobRecord:
    begun = jobs.started(job(**more), HERE, "call_1", 1, 101.0)
    assert begun is not None
    return begun


def test_a_job_is_started_by_one() -> None:
    """Whoever comes second, or too early, or too late, may not; nor may anybody once its end is wanted."""
    assert jobs.started(running(), THERE, "call_2", 1, 102.0) is None
    assert jobs.started(job(run_at=200.0), HERE, "call_1", 1, 199.0) is None
    assert jobs.started(job(), HERE, "call_1", 1, 1_000.0) is None
    assert jobs.started(msgspec.structs.replace(running(), cancel=True), HERE, "call_1", 2, 102.0) is None


def test_a_run_that_was_turned_away_is_the_same_attempt() -> None:
    """Its runner sends it again under a higher grant: one attempt. The same grant starts nothing twice."""
    begun = running()
    again = jobs.started(begun, HERE, "call_1", 2, 102.0)

    assert again is not None
    assert (again.attempts, again.grant_number) == (1, 2)
    assert jobs.started(again, HERE, "call_1", 2, 103.0) is None


def test_raised_code_is_tried_again_as_often_as_the_function_says() -> None:
    """With growing pauses; then the job is dead, with the reason and the last traceback."""
    now, current, pauses = 101.0, running(retries=2, expires_at=10_000.0), []
    while (after := jobs.failed(current, FailurePoint.RAISED, ERROR, now)).state is JobState.QUEUED:
        pauses.append(after.run_at - now)
        now = after.run_at
        begun = jobs.started(after, HERE, f"call_{now}", 1, now)
        assert begun is not None
        current = begun

    assert pauses == [1.0, 2.0]
    assert (after.state, after.reason, after.attempts, after.error) == (
        JobState.FAILED,
        JobFailureReason.RAISED,
        3,
        ERROR,
    )


def test_what_was_interrupted_runs_again_only_if_that_is_safe() -> None:
    """An idempotent job has three starts in all; any other is dead at the first loss."""
    assert jobs.interrupted(running(), 102.0, "its node is gone").reason is JobFailureReason.INTERRUPTED
    lost = jobs.interrupted(running(idempotent=True), 102.0, "its node is gone")
    assert lost.state is JobState.QUEUED
    spent = running(idempotent=True, interruptions=jobs.MAX_RERUNS)
    assert jobs.interrupted(spent, 102.0, "its node is gone").state is JobState.FAILED


def test_what_was_preempted_runs_again_as_the_same_attempt() -> None:
    """Its node was taken away, however often: that is no fault of the job. One that must not start again is dead."""
    error = JobError(code="preempted", detail="its node is taken away")
    assert jobs.failure_point_of("preempted", began=True) is FailurePoint.PREEMPTED
    assert jobs.failure_point_of("preempted", began=False) is FailurePoint.NOT_STARTED
    again = jobs.failed(running(idempotent=True, interruptions=jobs.MAX_RERUNS), FailurePoint.PREEMPTED, error, 102.0)
    assert (again.state, again.attempts, again.interruptions) == (JobState.QUEUED, 0, jobs.MAX_RERUNS)
    dead = jobs.failed(running(), FailurePoint.PREEMPTED, error, 102.0)
    assert (dead.state, dead.reason, dead.attempts) == (JobState.FAILED, JobFailureReason.INTERRUPTED, 1)


def test_what_stays_billed_of_a_start_is_remembered_for_the_next_one() -> None:
    """Of one whose end nobody tells, the longest of those in a row; what an agent has told leaves nothing."""
    lost = jobs.interrupted(running(idempotent=True, timeout=60.0), 113.0, "its gateway is gone")
    assert lost.lost_ms == 12_000.0
    again = jobs.started(lost, HERE, "call_2", 1, lost.run_at)
    assert again is not None
    at = again.started_at + 1.0
    assert jobs.failed(again, FailurePoint.INTERRUPTED, ERROR, at, is_untold=True).lost_ms == 12_000.0
    assert jobs.failed(again, FailurePoint.NOT_STARTED, ERROR, at, is_untold=True).lost_ms == 12_000.0
    assert jobs.failed(again, FailurePoint.INTERRUPTED, ERROR, at).lost_ms == 0.0
    # What has raised is over: a node that says nothing that can be of its time makes the next try no cheaper.
    assert jobs.failed(again, FailurePoint.RAISED, ERROR, at, is_untold=True).lost_ms == 0.0
    redriven = jobs.redriven(jobs.interrupted(running(), 102.0, "its gateway is gone"), 103.0)
    assert redriven is not None
    assert redriven.lost_ms == 0.0


def test_no_more_stays_billed_than_a_start_can_have_cost() -> None:
    """Whoever looks at it first may come late."""
    lost = jobs.interrupted(running(idempotent=True, timeout=5.0), 1_000.0, "its gateway is gone")
    assert lost.lost_ms == 5_000.0


def test_what_never_started_waits_until_it_expires() -> None:
    """It is no attempt. A job that never started expires; one that did, and has no time left, has failed."""
    waits = jobs.failed(job(), FailurePoint.NOT_STARTED, JobError(code="no_capacity", detail=""), 500.0)
    assert (waits.state, waits.attempts) == (JobState.QUEUED, 0)
    assert jobs.failed(job(), FailurePoint.NOT_STARTED, ERROR, 999.9).state is JobState.EXPIRED
    late = jobs.failed(running(retries=9), FailurePoint.RAISED, ERROR, 999.9)
    assert (late.state, late.reason) == (JobState.FAILED, JobFailureReason.RAISED)


def test_cancelling() -> None:
    """A waiting job ends; a running one is marked, and ends as cancelled however its run fails."""
    assert jobs.cancel_wanted(job(), 101.0).state is JobState.CANCELLED
    told = jobs.cancel_wanted(running(idempotent=True), 102.0)
    assert told.state is JobState.RUNNING
    assert jobs.interrupted(told, 103.0, "").state is JobState.CANCELLED
    done = jobs.succeeded(told, 103.0, output=b"\x01")
    assert jobs.cancel_wanted(done, 104.0) is done


def test_only_the_dead_are_driven_again() -> None:
    """With all their tries, and as much time as they had; what succeeded or lives stays as it is."""
    dead = jobs.failed(running(), FailurePoint.RAISED, ERROR, 102.0)
    anew = jobs.redriven(dead, 5_000.0)

    assert anew is not None
    assert (anew.state, anew.expires_at, anew.redrives, anew.attempts) == (JobState.QUEUED, 5_900.0, 1, 1)
    assert jobs.redriven(running(), 102.0) is None
    assert jobs.redriven(jobs.succeeded(running(), 102.0), 103.0) is None


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_error_has_its_point(code: str) -> None:
    """What certainly never began is no attempt; whatever began and is not known is no free try."""
    assert jobs.failure_point_of(code, began=True) is not FailurePoint.NOT_STARTED
    assert jobs.failure_point_of(code, began=False) in (
        FailurePoint.NOT_STARTED,
        FailurePoint.RAISED,
        FailurePoint.FINAL,
    )


def test_an_id_of_a_key() -> None:
    """Stable, of the tenant's own, and a call id."""
    made = jobs.keyed_job_id("local", "acme", "key", "order-7")
    assert parse_call_id(made).epoch == 0
    assert made == jobs.keyed_job_id("local", "acme", "key", "order-7")
    others = {jobs.keyed_job_id("local", *names) for names in (("rival", "key", "order-7"), ("acme", "cid", "order-7"))}
    assert made not in others
    assert len(others) == 2


def test_times_have_bounds() -> None:
    """A job neither waits for ever nor is over before it can begin."""
    jobs.check_times(100.0, 200.0, 100.0)
    for run_at, expires_at in ((100.0, 100.0), (1e12, 1e12 + 1), (100.0, 1e12), (float("nan"), 200.0)):
        with pytest.raises(BadInput):
            jobs.check_times(run_at, expires_at, 100.0)


def test_an_error_is_kept_as_text() -> None:
    """Its code, sentence, type and traceback."""
    error = FunctionRaised("ValueError: no", type="ValueError", traceback="Traceback …")
    assert jobs.job_error(error) == JobError(
        code="function_raised", detail="ValueError: no", type="ValueError", traceback="Traceback …"
    )


EVENTS = st.one_of(
    st.tuples(st.just("start"), st.sampled_from([HERE, THERE]), st.integers(1, 3)),
    st.tuples(st.just("fail"), st.sampled_from(list(FailurePoint)), st.sampled_from(sorted(jobs.REASONS))),
    st.tuples(st.sampled_from(["succeed", "cancel", "expire", "interrupt"]), st.none(), st.none()),
)


@given(
    st.lists(st.tuples(EVENTS, st.floats(0.0, 400.0)), max_size=40), st.integers(0, 3), st.booleans()
)  # fmt: skip
def test_whatever_happens_a_job_ends_once(
    history: list[tuple[tuple[str, object, object], float]], retries: int, idempotent: bool
) -> None:
    """Only what runs succeeds; starts are bounded by the tries it has; nothing leaves a terminal state by itself."""
    current, now, starts = job(retries=retries, idempotent=idempotent), 100.0, 0
    for (event, first, second), pause in history:
        now += pause
        if current.state.terminal:
            assert jobs.started(current, HERE, "x", 99, now) is None
            assert jobs.cancel_wanted(current, now) is current
            break
        before = current
        if event == "start" and isinstance(first, RunnerIdentity) and isinstance(second, int):
            current = jobs.started(current, first, f"call_{starts}", second, now) or current
            starts += before.state is JobState.QUEUED and current.state is JobState.RUNNING
        elif event == "fail" and current.state is JobState.RUNNING:
            current = jobs.failed(current, FailurePoint(str(first)), JobError(code=str(second), detail=""), now)
            starts -= first is FailurePoint.NOT_STARTED or (first is FailurePoint.PREEMPTED and idempotent)
        elif event == "interrupt" and current.state is JobState.RUNNING:
            current = jobs.interrupted(current, now, "gone")
        elif event == "succeed" and current.state is JobState.RUNNING:
            current = jobs.succeeded(current, now)
        elif event == "cancel":
            current = jobs.cancel_wanted(current, now)
        elif event == "expire" and current.state is JobState.QUEUED and now >= current.expires_at:
            current = jobs.expired(current, now)
        assert current.attempts == starts
        assert (current.runner is not None) == (current.state is JobState.RUNNING)
        assert (current.ended_at > 0) == current.state.terminal
        assert current.state is not JobState.EXPIRED or not starts
        if not idempotent:
            assert current.interruptions == 0
        assert current.raised <= retries
        assert current.interruptions <= jobs.MAX_RERUNS
