"""The job of a tick: one for each function and instant, bound to what was deployed at it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobState
from pilotlight_core.model.spec import Priority, Schedule
from pilotlight_gateway.schedules.tick_jobs import (
    UNSCHEDULED,
    bound_at_tick,
    deployed_version,
    owner_of,
    restored,
    tick_job,
    tick_job_id,
    withdrawn,
)
from tests.builders.specs import method
from tests.gateway.schedules.scheduled_apps import app_record, scheduled_method, scheduled_version

TICK = 7_200
METHOD = scheduled_method(priority=Priority.BATCH, retries=2, idempotent=True, timeout=50.0)
JOB = tick_job("local", METHOD, TICK, 7_000.0)

names = st.text("ab.:", min_size=1, max_size=4)
ticks = st.integers(0, 2**33)


def test_it_is_what_the_function_says() -> None:
    """It begins at its tick at the earliest, and until the next one at the latest; it has no input."""
    assert (JOB.run_at, JOB.expires_at, JOB.tick) == (7_200.0, 10_800.0, TICK)
    assert (JOB.function, JOB.version, JOB.ref, JOB.tenant) == ("acme:etl.nightly", "ver_1", "etl.nightly@v1", "acme")
    assert (JOB.priority, JOB.retries, JOB.idempotent, JOB.timeout) == (Priority.BATCH, 2, True, 50.0)
    assert msgspec.msgpack.decode(JOB.input) == {}
    assert owner_of(JOB) == ("acme", "etl")


@given(names, names, ticks, ticks)
def test_one_id_for_one_tick(who: str, other: str, tick: int, later: int) -> None:
    """Whoever makes it, and another for every other tick."""
    assert tick_job_id("local", "acme", who, tick) == tick_job_id("local", "acme", who, tick)
    same = (who, tick) == (other, later)
    assert (tick_job_id("local", "acme", who, tick) == tick_job_id("local", "acme", other, later)) is same


def test_it_is_bound_to_the_version_of_its_tick() -> None:
    """Also where the job was stored before that was deployed."""
    app = app_record((0.0, "ver_1"), (7_100.0, "ver_2"), (7_201.0, "ver_3"))
    assert deployed_version(JOB, app, 7_300.0) == "ver_2"
    bound = bound_at_tick(JOB, scheduled_version(name="ver_2", timeout=9.0), 7_300.0)
    assert (bound.version, bound.timeout, bound.retries, bound.idempotent) == ("ver_2", 9.0, 0, False)
    assert (bound.id, bound.state, bound.run_at) == (JOB.id, JobState.QUEUED, JOB.run_at)
    assert bound_at_tick(JOB, METHOD.version, 7_300.0) == JOB


def test_it_is_withdrawn_where_nothing_has_its_tick() -> None:
    """The app is gone or was stopped, the schedule is another one, or another method's."""
    assert deployed_version(JOB, None, 7_300.0) is None
    assert deployed_version(JOB, app_record((0.0, "ver_1"), (7_100.0, "")), 7_300.0) is None
    half_past = scheduled_version(Schedule(cron="30 * * * *"))
    other = scheduled_version(Schedule(method="run", cron="0 * * * *"), methods=(method("run", "run"),))
    for version in (None, half_past, other):
        gone = bound_at_tick(JOB, version, 7_300.0)
        assert (gone.state, gone.ended_at) == (JobState.CANCELLED, 7_300.0)
        assert gone.error is not None
        assert gone.error.code == UNSCHEDULED


def test_what_was_withdrawn_is_restored_and_nothing_else() -> None:
    """A person's cancellation stands, and so does what has run."""
    assert restored(withdrawn(JOB, 7_100.0)) == JOB
    assert restored(JOB) is None
    assert restored(jobs.cancelled(JOB, 7_100.0)) is None
    assert restored(msgspec.structs.replace(JOB, state=JobState.SUCCEEDED)) is None
