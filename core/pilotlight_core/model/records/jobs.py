"""Durable calls: the record of a job and its transitions. Plain functions over values; times are unix seconds.

                 started                     succeeded
    (stored) ──▶ QUEUED ──────────▶ RUNNING ───────────▶ SUCCEEDED
                  │ │ ▲               │ │ │
          expired │ │ │ another try   │ │ │ no more tries
                  │ │ └───────────────┘ │ └────────────▶ FAILED
                  ▼ │ cancelled         │ cancelled
            EXPIRED └───────────────────┴──────────────▶ CANCELLED

The record is stored before the caller gets 202, and every transition is one compare-and-set, so only one of several
processes can make it. A terminal state is final until the retention is over or a person redrives the job.

The transition after a failure depends on the `FailurePoint`:

- *not started*: no container had begun. It is tried again until the job expires, and does not count as an attempt.
- *raised*: the code raised. It is tried again `retries` times.
- *interrupted*: it had started, and its container, node or gateway is gone. An idempotent job runs again, `MAX_RERUNS`
  times; any other has failed, because it must not start a second time.
- *preempted*: the same, and its node was taken away with a notice. An idempotent job runs again until it expires: that
  says nothing against the job, so it counts as no attempt.
- *final*: anything else (a timeout, an answer of the wrong type, a version that cannot load) would fail again.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotlight_core.model.errors import BadInput, PilotlightError
from pilotlight_core.model.ids import ALPHABET, base36
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.spec import Priority

MAX_RERUNS = 2
"""How often an interrupted idempotent job runs again: three starts in all, as for live calls."""
FIRST_BACKOFF_S = 1.0
MAX_BACKOFF_S = 300.0
"""The pause before the nth retry is 1 s x 2^n, at most this."""
LONGEST_DELAY_S = 30 * 86_400.0
LONGEST_LIFE_S = 30 * 86_400.0
"""How long after `run_at` a job may wait for a container."""
TOKEN_DIGITS = 20


class JobState(StrEnum):
    QUEUED = "queued"  # waits for its time, its turn or its next try
    RUNNING = "running"  # sent to a container
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # it did not start in time

    @property
    def terminal(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING)


class JobFailureReason(StrEnum):
    """Why a job ended without an answer."""

    RAISED = "raised"  # its code raised in every try
    INTERRUPTED = "interrupted"  # it had started, was lost, and must not start again
    TIMEOUT = "timeout"  # it ran past the function's timeout
    BAD_OUTPUT = "bad_output"
    BAD_INPUT = "bad_input"
    LOAD_FAILED = "load_failed"
    UNDELIVERABLE = "undeliverable"  # its version or its input is gone, or it could run for longer than is allowed
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class FailurePoint(StrEnum):
    NOT_STARTED = "not_started"
    RAISED = "raised"
    INTERRUPTED = "interrupted"
    PREEMPTED = "preempted"
    FINAL = "final"


NEVER_BEGAN = frozenset({
    "queue_full", "rate_limited", "no_capacity", "breaker_open", "starting", "draining", "overloaded",
    "deadline_exceeded", "misconfigured", "stale_split",
})  # fmt: skip
"""Errors of calls that reached no container, if they did not start."""
REASONS = {
    "function_raised": JobFailureReason.RAISED,
    "execution_timeout": JobFailureReason.TIMEOUT,
    "bad_output": JobFailureReason.BAD_OUTPUT,
    "bad_input": JobFailureReason.BAD_INPUT,
    "load_failed": JobFailureReason.LOAD_FAILED,
}


class RunnerIdentity(msgspec.Struct, frozen=True):
    """The process that runs a job: a gateway's name and incarnation."""

    name: str
    instance: str


class BlobRef(msgspec.Struct, frozen=True):
    """A large input or result in the tenant's folder of the blob store. `size` is without its head."""

    sha256: str
    size: int


class JobError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failure as shown to the caller."""

    code: str
    detail: str
    type: str = ""
    traceback: str = ""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job. Bucket JOBS, key `{tenant}.{id}`."""

    id: str
    tenant: str
    """The caller, who pays."""
    function: str
    """`tenant:app.function` of its owner."""
    version: str
    """The version's id: of its last start, and before that the one that was deployed when it was accepted."""
    ref: str
    """`app.function@v7`."""
    method: str = ""
    priority: Priority = Priority.STANDARD
    input: bytes = b""
    """The msgpack of the named arguments; empty if it is a blob."""
    input_blob: BlobRef | None = None
    fingerprint: bytes = b""
    """Of the request: a repeated submission under the same key must have the same."""
    client_id: str | None = None
    submission: str = ""
    """The request that stored it, as distinct from a repetition under the same key."""
    created_at: float
    run_at: float
    """The earliest start."""
    expires_at: float
    """The latest start."""
    keep_s: float
    """How long it is kept after its end."""
    retries: int = 0
    idempotent: bool = False
    timeout: float = 300.0

    state: JobState = JobState.QUEUED
    attempts: int = 0
    raised: int = 0
    interruptions: int = 0
    redrives: int = 0
    runner: RunnerIdentity | None = None
    run: str = ""
    """The id of the call of its last start; of the first one, the job's own."""
    grant_number: int = msgspec.field(default=0, name="grant")
    cancel: bool = False
    started_at: float = 0.0
    ended_at: float = 0.0
    reason: JobFailureReason | None = None
    error: JobError | None = None
    output: bytes = b""
    """The msgpack of its answer; empty if it is a blob."""
    output_blob: BlobRef | None = None
    spent: Spent | None = None
    """Of the run that ended well: what it used, on the last of its slices."""
    spent_before: tuple[Spent, ...] = ()
    """What it used on others before: of a lost container, or while it was started anew."""
    stages: dict[str, float] = {}
    cold_start: dict[str, float] | None = None
    key_id: str = ""
    """The id of the API key that asked for it."""
    units: dict[str, int] = {}
    """What the function counted of it."""
    tick: int = 0
    """The unix second of the tick of the function's schedule that it is; 0: it is none."""
    sold: dict[str, int] = {}
    """What of `units` is billed where it has a price."""
    lost_ms: float = 0.0
    """How long its last start ran at most, if nobody says how that ended: it stays billed, so for so long the next one
    is not."""
    traceparent: str = ""
    """Of the request that stored it, to which the traces of its runs are linked; "": it came without one."""
    floats: bool = False
    """Whether its request named no version: each start runs what its function has by then, as for calls."""
    sticky: str = ""
    """What its request said in Pilotlight-Sticky."""
    stays: bool = False
    """Whether the new version of a rollout has failed it, so that the old one runs it."""

    @property
    def key(self) -> str:
        return job_key(self.tenant, self.id)

    @property
    def input_size(self) -> int:
        """Bytes of its input, in the record or the blob."""
        return len(self.input) if self.input_blob is None else self.input_blob.size

    @property
    def kept_until(self) -> float:
        """Until when it is kept at most, unless it is redriven."""
        return self.expires_at + self.timeout + self.keep_s

    @property
    def dead(self) -> bool:
        """Whether it ended without an answer, and not by cancellation."""
        return self.state in (JobState.FAILED, JobState.EXPIRED)


def job_key(tenant: str, job: str) -> str:
    return f"{tenant}.{job}"


def keyed_job_id(region: str, tenant: str, kind: str, key: str) -> str:
    """The id of the one job of a tenant under a key of its own; a repeated submission gets the same id.

    It names no gateway (epoch 0). 20 digits of base 36 hold 103 bits of the sha256.
    """
    import hashlib  # here, since OpenSSL takes longer to load than all of this module

    number = int.from_bytes(hashlib.sha256(f"{tenant}\0{kind}\0{key}".encode()).digest(), "big")
    digits = base36(number % len(ALPHABET) ** TOKEN_DIGITS).rjust(TOKEN_DIGITS, "0")
    return f"call_{region}_0_{digits}"


def check_times(run_at: float, expires_at: float, at: float) -> None:
    if not run_at <= at + LONGEST_DELAY_S:
        raise BadInput(f"run_at: at most {LONGEST_DELAY_S / 86_400:g} days ahead.", field="run_at")
    if not max(run_at, at) < expires_at <= max(run_at, at) + LONGEST_LIFE_S:
        raise BadInput(f"expires_in_s: more than 0 and at most {LONGEST_LIFE_S:g} seconds.", field="expires_in_s")


# -- what may happen -------------------------------------------------------------------------------------------------


def started(job: JobRecord, runner: RunnerIdentity, run: str, grant_number: int, at: float) -> JobRecord | None:
    """The job before it is sent as call `run` under a grant; None: it may not be sent.

    Its runner may send a refused run again, as the same attempt.
    """
    again = job.state is JobState.RUNNING and (job.runner, job.run) == (runner, run) and job.grant_number < grant_number
    if job.cancel or not (again or (job.state is JobState.QUEUED and job.run_at <= at < job.expires_at)):
        return None
    return msgspec.structs.replace(
        job,
        state=JobState.RUNNING,
        attempts=job.attempts if again else job.attempts + 1,
        runner=runner,
        run=run,
        grant_number=grant_number,
        started_at=at,
    )


def succeeded(
    job: JobRecord,
    at: float,
    *,
    output: bytes = b"",
    blob: BlobRef | None = None,
    spent: Spent | None = None,
    spent_before: tuple[Spent, ...] = (),
    stages: dict[str, float] | None = None,
    cold_start: dict[str, float] | None = None,
    units: dict[str, int] | None = None,
    sold: dict[str, int] | None = None,
) -> JobRecord:
    done = msgspec.structs.replace(
        job,
        output=output,
        output_blob=blob,
        spent=spent,
        spent_before=spent_before,
        stages=stages or {},
        cold_start=cold_start,
        units=units or {},
        sold=sold or {},
        error=None,
    )
    return _ended(done, JobState.SUCCEEDED, None, at)


def failure_point_of(code: str, *, began: bool) -> FailurePoint:
    """Where a try failed that ended with the error `code`; `began`: it counts as started."""
    if not began and code in NEVER_BEGAN:
        return FailurePoint.NOT_STARTED
    if code == "function_raised":
        return FailurePoint.RAISED
    if code in REASONS:
        return FailurePoint.FINAL
    if began and code == "preempted":
        return FailurePoint.PREEMPTED
    return FailurePoint.INTERRUPTED if began else FailurePoint.NOT_STARTED


def failed(job: JobRecord, point: FailurePoint, error: JobError, at: float, *, is_untold: bool = False) -> JobRecord:
    """The job after a failed try: waiting for the next one, or dead; `is_untold`: nobody says how its start ended."""
    # A start is recorded before the run is sent: if the run was refused, it does not count.
    none = point is FailurePoint.NOT_STARTED and job.state is JobState.RUNNING
    lost_ms = job.lost_ms if point is FailurePoint.NOT_STARTED else 0.0
    if is_untold and not none and point is not FailurePoint.RAISED:  # what raises is done, whatever its node says
        # A start is ended at its function's timeout: who looks at it later does not make it longer.
        lost_ms = max(job.lost_ms, min(at - job.started_at, job.timeout) * 1000.0)
    noted = msgspec.structs.replace(job, error=error, attempts=job.attempts - none, lost_ms=lost_ms)
    if job.cancel:
        return cancelled(noted, at)
    match point:
        case FailurePoint.NOT_STARTED:
            return retried(noted, at, backoff(0))
        case FailurePoint.RAISED if job.raised < job.retries:
            return retried(msgspec.structs.replace(noted, raised=job.raised + 1), at, backoff(job.raised))
        case FailurePoint.INTERRUPTED if job.idempotent and job.interruptions < MAX_RERUNS:
            lost = msgspec.structs.replace(noted, interruptions=job.interruptions + 1)
            return retried(lost, at, backoff(job.interruptions))
        case FailurePoint.PREEMPTED if job.idempotent:
            return retried(msgspec.structs.replace(noted, attempts=max(0, noted.attempts - 1)), at, backoff(0))
        case FailurePoint.INTERRUPTED | FailurePoint.PREEMPTED:
            return _ended(noted, JobState.FAILED, JobFailureReason.INTERRUPTED, at)
        case _:
            return _ended(noted, JobState.FAILED, REASONS.get(error.code, JobFailureReason.UNDELIVERABLE), at)


def interrupted(job: JobRecord, at: float, detail: str) -> JobRecord:
    """The job whose gateway is gone."""
    error = JobError(code="container_died", detail=detail)
    return failed(job, FailurePoint.INTERRUPTED, error, at, is_untold=True)


def retried(job: JobRecord, at: float, pause_s: float) -> JobRecord:
    """The job waiting `pause_s` seconds for its next try, or expired if that is too late."""
    waiting = msgspec.structs.replace(job, state=JobState.QUEUED, runner=None, run_at=at + pause_s)
    return expired(waiting, at) if waiting.run_at >= job.expires_at else waiting


def cancelled(job: JobRecord, at: float) -> JobRecord:
    return _ended(job, JobState.CANCELLED, JobFailureReason.CANCELLED, at)


def cancel_wanted(job: JobRecord, at: float) -> JobRecord:
    """The job after a request to cancel it: cancelled if it waits; if it runs, marked for its runner to stop it."""
    if job.state.terminal or job.cancel:
        return job
    return cancelled(job, at) if job.state is JobState.QUEUED else msgspec.structs.replace(job, cancel=True)


def expired(job: JobRecord, at: float) -> JobRecord:
    """The job after its time to start is over. If it had started and failed, it has failed for good."""
    if not job.attempts:
        return _ended(job, JobState.EXPIRED, JobFailureReason.EXPIRED, at)
    reason = (
        REASONS.get(job.error.code, JobFailureReason.INTERRUPTED)
        if job.error is not None
        else JobFailureReason.INTERRUPTED
    )
    return _ended(job, JobState.FAILED, reason, at)


def undeliverable(job: JobRecord, at: float, detail: str, code: str = "unknown_version") -> JobRecord:
    noted = msgspec.structs.replace(job, error=JobError(code=code, detail=detail))
    return _ended(noted, JobState.FAILED, JobFailureReason.UNDELIVERABLE, at)


def redriven(job: JobRecord, at: float) -> JobRecord | None:
    """A dead or cancelled job, queued again with all its tries and as much time as before; else None."""
    if not (job.dead or job.state is JobState.CANCELLED):
        return None
    return msgspec.structs.replace(
        job,
        state=JobState.QUEUED,
        run_at=at,
        expires_at=at + max(1.0, job.expires_at - job.created_at),
        raised=0,
        interruptions=0,
        lost_ms=0.0,
        redrives=job.redrives + 1,
        runner=None,
        cancel=False,
        ended_at=0.0,
        reason=None,
    )


def backoff(tries: int) -> float:
    """Seconds before the next try, after `tries` retries."""
    return min(FIRST_BACKOFF_S * 2.0 ** min(tries, 32), MAX_BACKOFF_S)


def job_error(error: PilotlightError) -> JobError:
    return JobError(
        code=error.wire_code,
        detail=error.detail,
        type=str(error.more.get("type", "")),
        traceback=str(error.more.get("traceback", "")),
    )


def _ended(job: JobRecord, state: JobState, reason: JobFailureReason | None, at: float) -> JobRecord:
    return msgspec.structs.replace(job, state=state, reason=reason, ended_at=at, runner=None)
