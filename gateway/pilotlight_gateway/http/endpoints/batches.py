"""Batches of a tenant, and their operations."""

from __future__ import annotations

import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.call_api import LINE_PATTERN
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import NAME_PATTERN, REF_PATTERN
from pilotlight_core.model.records.batches import (
    DEFAULT_LIFE_S,
    LONGEST_LIFE_S,
    SHORTEST_LIFE_S,
    BatchInfo,
    BatchQuery,
    BatchRecord,
    BatchState,
    ItemResult,
)
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_core.model.tracing.trace_context import trace_text
from pilotlight_gateway.batches.batch_manifest import CHUNK_BYTES
from pilotlight_gateway.batches.batch_service import BatchService, batch_info
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    JSON,
    Operation,
    Parameter,
    json_answer,
    list_of,
    principal_of,
)
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.event_answers import EventStream, relay
from pilotlight_gateway.http.protocol.http_exchange import exchange_of, header
from pilotlight_gateway.http.protocol.list_pages import PAGE, page_of
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, pieces
from pilotlight_gateway.http.protocol.trace_headers import TRACEPARENT, TRACESTATE, trace_headers
from pilotlight_gateway.idempotency.key_header import KEY, read_key
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.timeout_limit import check_job_time

BATCH_BODY = BodyLimits(size=200 * 10**6, window=10.0)
NDJSON = "application/x-ndjson"
LINES = (NDJSON, "application/jsonl", "application/jsonlines", "application/x-jsonlines")
HELD_BYTES = 4 * CHUNK_BYTES
"""Memory of one upload: a piece, its lines, its items and a chunk."""
LABEL = re.compile(LINE_PATTERN)
LABEL_LENGTH = 100
SECONDS = re.compile(r"[0-9]{1,9}([.][0-9]{1,20})?")
ENDS = tuple(str(state) for state in JobState if state.terminal)
LINE_BREAK = b"\n"


class BatchesOfRequests(Protocol):
    """Takes batches of requests for models."""

    async def submit(self, request: Request) -> Response:
        """Answer `POST /v1/batches` with JSON. Raises BadInput and NotFound."""
        ...


@dataclass(frozen=True, kw_only=True)
class BatchServices:
    """The ports of these endpoints."""

    batches: BatchService
    registry: RegistryPort
    resolver: Resolver
    gate: DrainGate
    budget: ByteBudget
    codec: BodyCodec
    requests: BatchesOfRequests


async def submit(request: Request, services: BatchServices) -> Response:
    """`POST /v1/batches`: lines of inputs, or, as JSON, what OpenAI's clients send."""
    kind = header(request.scope, b"content-type").partition(b";")[0].strip().lower().decode("latin-1")
    if kind == JSON:
        if "function" in request.query_params:
            raise BadInput(
                f"function: inputs of a function are lines of {NDJSON}; {JSON} with input_file_id names no function.",
                field="function",
            )
        held = services.budget.holding(HELD_BYTES, principal_of(request).tenant)
        with services.gate.around(exchange_of(request.scope).task), held:
            return await services.requests.submit(request)
    if kind not in LINES:
        raise BadInput(
            f"This takes {NDJSON}, an input on each line, or {JSON} with input_file_id.", code="unsupported_media_type"
        )
    tenant, query, key = principal_of(request).tenant, _query(request), header(request.scope, KEY)
    with services.gate.around(exchange_of(request.scope).task), services.budget.holding(HELD_BYTES, tenant):
        version = await services.resolver.resolve(tenant, query.function)
        check_job_time(services.registry, tenant, version)
        arriving: Any = pieces(request.scope, request.receive, BATCH_BODY)
        async with aclosing(arriving):
            name = read_key(key) if key else ""
            record = await services.batches.submit(tenant, version, query, arriving, name)
    return json_answer(batch_document(record), status=201)


async def show_all(request: Request, services: BatchServices) -> Response:
    """`GET /v1/batches`."""
    found = await services.batches.all(principal_of(request).tenant)
    told = [batch_document(record) for record in found]
    return json_answer(page_of(request, told) | {"batches": told})


async def show(request: Request, services: BatchServices) -> Response:
    """`GET /v1/batches/{batch}`."""
    return json_answer(batch_document(await services.batches.find(*_named(request))))


async def cancel(request: Request, services: BatchServices) -> Response:
    """`POST /v1/batches/{batch}/cancel`."""
    return json_answer(batch_document(await services.batches.cancel(*_named(request))), status=202)


async def resume(request: Request, services: BatchServices) -> Response:
    """`POST /v1/batches/{batch}/resume`."""
    return json_answer(batch_document(await services.batches.resume(*_named(request))), status=202)


async def show_results(request: Request, services: BatchServices) -> None:
    """`GET /v1/batches/{batch}/results`: NDJSON, one line per ended item."""
    wanted = request.query_params.get("state", ",".join(ENDS)).split(",")
    if not set(wanted) <= set(ENDS):
        raise BadInput(f"state: expected some of {', '.join(ENDS)}.", field="state")
    record = await services.batches.find(*_named(request))
    headers = [(b"content-type", NDJSON.encode()), (b"cache-control", b"no-store")]
    stream = EventStream(exchange_of(request.scope), headers, keepalive=LINE_BREAK)

    async def render(job: JobRecord, output: bytes) -> bytes:
        return b"".join(await services.codec.output_json(output, job.version, None, job.tenant))

    results: Any = services.batches.results(record, render, frozenset(wanted))

    async def send_all() -> None:
        async with aclosing(results):
            async for result in results:
                await stream.send(_line(result))

    await relay(stream, request.receive, send_all)
    await stream.finish()


STATUSES = {
    BatchState.RUNNING: "in_progress", BatchState.COMPLETED: "completed", BatchState.CANCELLING: "cancelling",
    BatchState.CANCELLED: "cancelled", BatchState.FAILED: "failed",
}  # fmt: skip
"""A batch's state in OpenAI's words."""


def batch_document(record: BatchRecord) -> dict[str, Any]:
    """A batch as the API shows it; of one of requests with what OpenAI's clients read."""
    told: dict[str, Any] = msgspec.to_builtins(batch_info(record))
    if (form := record.openai) is None:
        return told
    counts, ended = record.counts, int(record.ended_at) or None
    failed = counts.failed + counts.expired + counts.cancelled
    status = STATUSES[record.state]
    if record.state is BatchState.COMPLETED and counts.expired:
        status = "expired"
    number = record.id.removeprefix("batch_")
    over = record.state.over and record.state is not BatchState.FAILED
    return told | {
        "object": "batch",
        "endpoint": form.endpoint,
        "model": form.model,
        "input_file_id": form.input_file_id,
        "completion_window": form.completion_window,
        "status": status,
        "created_at": int(record.created_at),
        "in_progress_at": int(record.created_at),
        "expires_at": int(record.expires_at),
        "completed_at": ended if status == "completed" else None,
        "expired_at": ended if status == "expired" else None,
        "cancelled_at": ended if status == "cancelled" else None,
        "failed_at": ended if status == "failed" else None,
        "output_file_id": f"file-out-{number}" if over and counts.succeeded else None,
        "error_file_id": f"file-err-{number}" if over and failed else None,
        "errors": _errors(record),
        "request_counts": {"total": record.total, "completed": counts.succeeded, "failed": failed},
        "metadata": form.metadata or None,
    }


def _errors(record: BatchRecord) -> dict[str, Any] | None:
    if record.state is not BatchState.FAILED:
        return None
    error = {"code": "inputs_gone", "message": record.reason, "line": None, "param": None}
    return {"object": "list", "data": [error]}


def _line(result: ItemResult) -> bytes:
    return msgspec.json.encode(result) + LINE_BREAK


def _named(request: Request) -> tuple[str, str]:
    return principal_of(request).tenant, request.path_params["batch"]


def _query(request: Request) -> BatchQuery:
    asked = request.query_params
    if "function" not in asked:
        raise BadInput("function: expected app.function, as a parameter of the address.", field="function")
    label, life = asked.get("label", ""), asked.get("expires_in_s", f"{DEFAULT_LIFE_S:g}")
    if len(label) > LABEL_LENGTH or not LABEL.fullmatch(label):
        raise BadInput(f"label: expected at most {LABEL_LENGTH} visible characters.", field="label")
    if not SECONDS.fullmatch(life):
        raise BadInput("expires_in_s: expected a number of seconds.", field="expires_in_s")
    sent = trace_headers(request.scope["headers"])
    return BatchQuery(
        function=asked["function"],
        method=asked.get("method"),
        label=label,
        expires_in_s=float(life),
        traceparent=trace_text(sent.get(TRACEPARENT, b""), sent.get(TRACESTATE, b"")),
    )


REQUESTS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "input_file_id": {"type": "string"},
        "endpoint": {"type": "string"},
        "completion_window": {"type": "string", "default": "24h"},
        "metadata": {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
    },
    "required": ["input_file_id", "endpoint"],
}
BATCHES = (
    Operation(
        method="POST", path="/v1/batches", name="submitBatch", status=201, endpoint=submit, scopes=("invoke",),
        about="Run a function with each line's input, or, as OpenAI's clients ask in JSON, a model with each request "
        "of a file, at the lowest class. Every line is checked before any starts.",
        request_media=(*LINES, JSON), request_schemas={JSON: REQUESTS_SCHEMA}, answer=BatchInfo,
        errors=(
            *BODY, "unknown_function", "unknown_version", "rate_limited", "overloaded", "draining",
            "idempotency_key_reused", "model_not_found", "not_found",
        ),
        parameters=(
            Parameter(
                name="function", about="Of lines, which need it: app.function, as for a call.",
                schema={"type": "string", "pattern": REF_PATTERN},
            ),
            Parameter(name="method", about="A method of a class.", schema={"type": "string", "pattern": NAME_PATTERN}),
            Parameter(
                name="label", about="A text for people.",
                schema={"type": "string", "maxLength": LABEL_LENGTH, "pattern": LINE_PATTERN},
            ),
            Parameter(
                name="expires_in_s", about="Seconds within which the items must start.",
                schema={
                    "type": "number", "minimum": SHORTEST_LIFE_S, "maximum": LONGEST_LIFE_S, "default": DEFAULT_LIFE_S,
                },
            ),
            Parameter(
                name="Idempotency-Key", where="header",
                about="A repeated request with the same key gets the same batch.",
                schema={"type": "string", "minLength": 1, "maxLength": 255},
            ),
        ),
    ),
    Operation(
        method="GET", path="/v1/batches", name="listBatches", about="The batches, newest first.", endpoint=show_all,
        scopes=("invoke", "read"), answer=list_of("Batches", BatchInfo), parameters=PAGE,
        errors=("bad_input", "not_found"),
    ),
    Operation(
        method="GET", path="/v1/batches/{batch}", name="getBatch", about="A batch and its progress.", endpoint=show,
        scopes=("invoke", "read"), answer=BatchInfo, errors=("not_found",),
    ),
    Operation(
        method="GET", path="/v1/batches/{batch}/results", name="getBatchResults", endpoint=show_results,
        about="One line per ended item, in the order of items.", scopes=("invoke", "read"), answer=ItemResult,
        answer_media=(NDJSON,), errors=("not_found", "bad_input"),
        parameters=(
            Parameter(
                name="state", about="Only these states, comma-separated.",
                schema={"type": "string", "pattern": f"^({'|'.join(ENDS)})(,({'|'.join(ENDS)}))*$"},
            ),
        ),
    ),
    Operation(
        method="POST", path="/v1/batches/{batch}/cancel", name="cancelBatch", status=202, endpoint=cancel,
        about="Submit no more items and cancel queued jobs; running ones finish.", scopes=("invoke",),
        answer=BatchInfo, errors=("not_found", "conflict"),
    ),
    Operation(
        method="POST", path="/v1/batches/{batch}/resume", name="resumeBatch", status=202, endpoint=resume,
        about="Continue a cancelled batch; cancelled items run again.", scopes=("invoke",),
        answer=BatchInfo, errors=("not_found", "conflict"),
    ),
)  # fmt: skip
