"""The job of a tick: one for each function and tick, by its id, whoever stores it and however often."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobError, JobRecord, JobState, keyed_job_id
from pilotlight_core.model.schedules.ticks import is_tick, kept_s, latest_start
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_gateway.schedules.scheduled_methods import ScheduledMethod, methods_of, version_at

NOTHING = msgspec.msgpack.encode({})
UNSCHEDULED = "unscheduled"
"""The code of what was withdrawn, as distinct from what a person cancelled."""


def tick_job_id(region: str, tenant: str, who: str, tick: int) -> str:
    return keyed_job_id(region, tenant, "tick", f"{who}\0{tick}")


def tick_job(region: str, method: ScheduledMethod, tick: int, at: float) -> JobRecord:
    """The job of a tick, as it is stored at the unix second `at`."""
    version, spec = method.version, method.version.spec
    return JobRecord(
        id=tick_job_id(region, version.tenant, method.who, tick),
        tenant=version.tenant,
        function=method.function,
        version=version.id,
        ref=version.ref,
        method=method.schedule.method,
        priority=spec.priority,
        input=NOTHING,
        created_at=at,
        run_at=float(tick),
        expires_at=latest_start(method.schedule, method.who, tick),
        keep_s=kept_s(method.schedule, method.who, tick),
        retries=spec.retries,
        idempotent=spec.idempotent,
        timeout=spec.timeout,
        tick=tick,
    )


def withdrawn(job: JobRecord, at: float) -> JobRecord:
    """The job of a tick that does not come, since nothing was deployed at it that has it."""
    why = JobError(code=UNSCHEDULED, detail="No version with this schedule was deployed at its tick.")
    return jobs.cancelled(msgspec.structs.replace(job, error=why), at)


def restored(job: JobRecord) -> JobRecord | None:
    """A withdrawn job, queued again; None: it is something else, or a person cancelled it."""
    if job.state is not JobState.CANCELLED or job.error is None or job.error.code != UNSCHEDULED:
        return None
    return msgspec.structs.replace(
        job, state=JobState.QUEUED, run_at=float(job.tick), ended_at=0.0, reason=None, error=None
    )


def deployed_version(job: JobRecord, app: AppRecord | None, at: float) -> str | None:
    """The id of the version that was deployed at the tick of a job; None: none was.

    `app` is its app's record, `at` the present unix second.
    """
    return None if app is None else version_at(app, job.function.rpartition(".")[2], job.tick, at)


def bound_at_tick(job: JobRecord, version: VersionRecord | None, at: float) -> JobRecord:
    """The job of a tick with `version`, which was deployed at it, or withdrawn if that has no such tick."""
    for method in () if version is None else methods_of(version):
        if method.schedule.method == job.method and is_tick(method.schedule, method.who, job.tick):
            spec = method.version.spec
            return msgspec.structs.replace(
                job,
                version=method.version.id,
                ref=method.version.ref,
                retries=spec.retries,
                idempotent=spec.idempotent,
                timeout=spec.timeout,
            )
    return withdrawn(job, at)


def owner_of(job: JobRecord) -> tuple[str, str]:
    """The tenant and app of its function."""
    tenant, _, name = job.function.partition(":")
    return tenant, name.rpartition(".")[0]
