"""Turns jobs' records into events. Only the shown fields are decoded."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.api.webhook_api import JOB_EVENTS, DeliveryRecord, WebhookEvent, WebhookRecord
from pilotlight_core.model.tracing.trace_context import parse_traceparent, root_context
from pilotlight_gateway.webhooks.webhook_events import job_event

LONGEST_DETAIL = 1_000
TERMINAL = {event.partition(".")[2]: event for event in JOB_EVENTS}


class EndedError(msgspec.Struct, frozen=True):
    """The shown fields of an error."""

    code: str
    detail: str


class EndedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The shown fields of a `JobRecord`."""

    id: str
    tenant: str
    ref: str
    state: str = "queued"
    method: str = ""
    client_id: str | None = None
    created_at: float
    started_at: float = 0.0
    ended_at: float = 0.0
    attempts: int = 0
    redrives: int = 0
    reason: str | None = None
    error: EndedError | None = None
    run: str = ""
    traceparent: str = ""


_decoder = msgspec.msgpack.Decoder(EndedJob)


def event_of(data: bytes, webhook: WebhookRecord) -> DeliveryRecord | None:
    """The delivery that a job's record causes for a webhook, if any.

    Raises:
        msgspec.DecodeError: `data` is not a job's record.
    """
    job = _decoder.decode(data)
    event = TERMINAL.get(job.state)
    if event is None or event not in webhook.events:
        return None
    # Below the root of the trace of its last run, which was sampled if the request that stored it asked for that.
    asked = parse_traceparent(job.traceparent) if job.traceparent else None
    trace = root_context(job.run or job.id, sampled=asked is not None and asked.sampled).header
    shown = _event_data(job, event)
    return job_event(job.tenant, webhook.id, event, job.id, shown, job.ended_at, round=job.redrives, traceparent=trace)


def _event_data(job: EndedJob, event: WebhookEvent) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": job.id,
        "state": job.state,
        "function": job.ref,
        "method": job.method or None,
        "client_id": job.client_id,
        "created_at": job.created_at,
        "started_at": job.started_at or None,
        "ended_at": job.ended_at,
        "attempts": job.attempts,
        "url": f"/v1/calls/{job.id}",
    }
    if event is not WebhookEvent.SUCCEEDED:
        shown["reason"] = job.reason
    if job.error is not None:
        shown["error"] = {"code": job.error.code, "detail": job.error.detail[:LONGEST_DETAIL]}
    return shown
