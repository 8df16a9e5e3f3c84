"""Durable calls as they are stored."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.records.jobs import JobError, JobFailureReason, JobRecord, JobState

JOB = "call_local_1_00000000000000000001"


def job(**more: Any) -> JobRecord:
    """A job that was just stored."""
    fields: dict[str, Any] = {
        "id": JOB, "tenant": "acme", "function": "acme:shop.hello", "version": "ver_1", "ref": "shop.hello@v1",
        "created_at": 100.0, "run_at": 100.0, "expires_at": 1_000.0, "keep_s": 60.0, "timeout": 10.0,
    }  # fmt: skip
    return JobRecord(**fields | more)


def dead_job(**more: Any) -> JobRecord:
    """One that raised, and will not be tried again."""
    error = JobError(code="function_raised", detail="ValueError: hush-hush", traceback="Traceback: hush-hush")
    ended: dict[str, Any] = {
        "state": JobState.FAILED,
        "reason": JobFailureReason.RAISED,
        "error": error,
        "ended_at": 200.0,
    }
    return job(**ended | more)
