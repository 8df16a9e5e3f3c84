"""Durable calls: `Prefer: respond-async` on a call, `/v1/jobs`, and jobs in `/v1/calls/{id}`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from pilotlight_core.model.api.call_api import CallRequest, CallResponse, JobList, JobStatus
from pilotlight_core.model.errors import BadInput, error_from_code
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_core.model.suggestions import did_you_mean, nearest
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat, format_of_answer
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_responses import encode_msgpack, json_around, response_of, usage_of
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.endpoints.billing.job_money import JobMoney
from pilotlight_gateway.http.protocol.api_operations import count_of, json_answer, principal_of
from pilotlight_gateway.http.protocol.http_exchange import exchange_of, header
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.idempotency.key_header import KEY, PREFER, read_wait, require_key
from pilotlight_gateway.idempotency.key_record import fingerprint_of
from pilotlight_gateway.jobs.job_port import PAGE_AT_MOST
from pilotlight_gateway.jobs.job_service import JobOptions, JobService
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.tenancy.name_hints import check_listed
from pilotlight_gateway.tenancy.registry_port import RegistryPort

LIMIT = 100
"""Default number of jobs on a page."""


@dataclass(frozen=True, kw_only=True)
class JobServices:
    """The ports of these endpoints."""

    jobs: JobService
    registry: RegistryPort
    budget: ByteBudget
    codec: BodyCodec
    rates: ApiRates
    book: PriceBook
    clock: Callable[[], float]
    """Monotonic seconds."""
    money: JobMoney | None = None
    """None: there are no budgets."""


async def accept_job(
    services: JobServices,
    call: PreparedCall,
    asked: CallRequest,
    answer: BodyFormat,
    scope: Scope,
    headers: dict[bytes, bytes],
) -> None:
    """Store the call as a job, and answer 202, or with `wait=N` its result if it ends in time.

    Raises:
        PilotlightError: the job was not accepted, or failed during the wait.
    """
    exchange = exchange_of(scope)
    prefer, key = headers.get(PREFER, b""), headers.get(KEY, b"")
    expires = asked.expires_in_s
    if expires is None and asked.deadline_ms is not None:
        expires = asked.deadline_ms / 1000
    options = JobOptions(
        run_at=asked.run_at,
        expires_in_s=expires,
        keep_s=asked.keep_s,
        key=require_key(scope["headers"]) if key else "",
        fingerprint=fingerprint_of(scope["path"], call.method.name, b"job", call.input) if key or asked.id else b"",
    )
    wait = read_wait(prefer)
    with services.rates.holding(call.tenant) if wait else nullcontext():
        submitted = await services.jobs.submit(call, options)
        job = submitted.job
        exchange.call_id = job.id
        if wait and answer is not BodyFormat.EVENTS:
            job = await services.jobs.wait(job, wait)
    replayed = [(b"idempotent-replayed", b"true")] if submitted.replayed else []
    applied = [(b"preference-applied", b"respond-async"), (b"location", f"/v1/calls/{job.id}".encode()), *replayed]
    if job.state.terminal and wait:
        await _answer_ended(services, job, call, answer, scope, applied)
        return
    status = _status(services, job)  # without its position in the queue, whose computation costs more than the rest
    await exchange.answer(202, [(b"content-type", b"application/json"), *applied], msgspec.json.encode(status))


async def _answer_ended(
    services: JobServices,
    job: JobRecord,
    call: PreparedCall,
    answer: BodyFormat,
    scope: Scope,
    headers: list[tuple[bytes, bytes]],
) -> None:
    """Answer with the job's result, as a live call would."""
    exchange = exchange_of(scope)
    if job.state is not JobState.SUCCEEDED:
        raise error_of(job)
    output = await services.jobs.output(job)
    at, result = services.clock(), _result_of(job, output)
    response = response_of(call, result, book=services.book, at=at, request_id=exchange.request_id)
    response = msgspec.structs.replace(response, id=job.id)
    await _answer_with(services, job, response, output, answer, scope, headers)


async def show_job(request: Request, services: JobServices, job: JobRecord) -> Response | None:
    """A job in `GET /v1/calls/{id}`, after `Prefer: wait=N` seconds at most; a successful one with its output."""
    answer = format_of_answer(header(request.scope, b"accept"))
    if wait := read_wait(header(request.scope, PREFER)):
        job = await services.jobs.wait(job, wait)
    status = await status_of(services, job)
    if job.state is JobState.SUCCEEDED:
        output = await services.jobs.output(job)
        await _answer_with(services, job, status, output, answer, request.scope, [])
        return None
    if answer is BodyFormat.MSGPACK:
        return Response(msgspec.msgpack.encode(status), media_type=answer.value.decode())
    return json_answer(status)


async def list_jobs(request: Request, services: JobServices) -> Response:
    """`GET /v1/jobs`."""
    asked = request.query_params
    limit = count_of(request, "limit", LIMIT, PAGE_AT_MOST)
    wanted = _wanted(asked.get("state", ",".join(JobState)), asked.get("function", ""))
    tenant, cursors = principal_of(request).tenant, services.jobs.cursors
    before = await cursors.open(tenant, asked["cursor"]) if "cursor" in asked else 0
    if (function := asked.get("function")) is not None:
        await check_listed(services.registry, tenant, function)
    page = await services.jobs.page(tenant, limit=limit, before=before, wanted=wanted)
    listed = tuple(_status(services, job) for job in page.jobs)
    return json_answer(JobList(jobs=listed, next=await cursors.seal(tenant, page.before) if page.before else None))


async def redrive_job(request: Request, services: JobServices) -> Response:
    """`POST /v1/jobs/{id}/redrive`."""
    job = await services.jobs.redrive(principal_of(request).tenant, request.path_params["id"])
    return json_answer(await status_of(services, job), status=202)


async def status_of(services: JobServices, job: JobRecord) -> JobStatus:
    """A job as the API shows it, without its output; a queued one with its position."""
    place = await services.jobs.locate(job)
    seconds = None if place.seconds is None else max(place.seconds, job.run_at - services.jobs.wall())
    lack = None
    if services.money is not None and job.state is JobState.QUEUED:
        lack = await services.money.lack(job, services.jobs.wall())
    return msgspec.structs.replace(
        _status(services, job), position=place.position, starts_in_s=seconds, waits_for=lack
    )  # fmt: skip


def error_of(job: JobRecord) -> Exception:
    """The error of a job without output; `state` distinguishes it from a refused submission."""
    state = str(job.state)
    if job.state is JobState.CANCELLED:
        return error_from_code("cancelled", "The job was cancelled.", state=state)
    if job.error is None:
        return error_from_code("deadline_exceeded", "The job did not start in the time it had.", state=state)
    more: dict[str, Any] = {
        "type": job.error.type, "traceback": job.error.traceback, "reason": str(job.reason or ""), "state": state,
    }  # fmt: skip
    return error_from_code(job.error.code, job.error.detail, **{name: text for name, text in more.items() if text})


def _status(services: JobServices, job: JobRecord) -> JobStatus:
    error = None
    if job.error is not None and job.state is not JobState.SUCCEEDED:
        error = {key: value for key, value in msgspec.structs.asdict(job.error).items() if value}
    done = job.state is JobState.SUCCEEDED
    return JobStatus(
        id=job.id,
        state=str(job.state),
        version=job.ref,
        age_ms=max(0.0, services.jobs.wall() - job.created_at) * 1000.0,
        client_id=job.client_id,
        error=error,
        created_at=job.created_at,
        run_at=job.run_at,
        expires_at=job.expires_at,
        started_at=job.started_at or None,
        ended_at=job.ended_at or None,
        attempts=job.attempts,
        run=job.run or None,
        reason=str(job.reason) if job.reason is not None else None,
        redrives=job.redrives,
        tick=job.tick or None,
        usage=usage_of(_result_of(job, b""), services.book, job.tenant, job.ended_at) if done else None,
        stages=job.stages if done else None,
        cold_start=job.cold_start,
    )


def _result_of(job: JobRecord, output: bytes) -> CallResult:
    return CallResult(
        output=output,
        spent=job.spent,
        spent_before=job.spent_before,
        stages=job.stages,
        cold_start=job.cold_start,
        attempts=job.attempts,
        units=job.units,
        sold=job.sold,
    )


async def _answer_with(
    services: JobServices,
    job: JobRecord,
    answer: CallResponse | JobStatus,
    output: bytes,
    form: BodyFormat,
    scope: Scope,
    headers: list[tuple[bytes, bytes]],
) -> None:
    """Send an answer with a job's output, which was checked when the job ended."""
    with services.budget.holding(len(output), job.tenant):
        if form is BodyFormat.MSGPACK:
            body = [encode_msgpack(answer, output)]
        else:
            form = BodyFormat.JSON
            value = await services.codec.output_json(output, job.version, None, job.tenant)
            body = json_around(lambda raw: msgspec.structs.replace(answer, output=raw), value)
    del output
    exchange, size = exchange_of(scope), sum(map(len, body))
    headers = [(b"content-type", form.value), *headers]
    if size <= PIECE_BYTES:
        await exchange.answer(200, headers, b"".join(body))
    else:
        with services.budget.holding(size, job.tenant):
            await answer_in_pieces(exchange, headers, body)


def _wanted(states: str, function: str) -> Callable[[JobRecord], bool]:
    names = states.split(",")
    if wrong := [name for name in names if name not in tuple(JobState)]:
        meant = did_you_mean(nearest(wrong[0], JobState))
        raise BadInput(f"state: expected some of {', '.join(JobState)}.{meant}", field="state")
    kinds = set(map(JobState, names))
    return lambda job: job.state in kinds and function in ("", job.function, job.function.partition(":")[2])
