"""Batches of requests as OpenAI's clients submit them: a file of requests for one model, and files of answers.

Such a batch is one of the platform's own: its lines become inputs of the model's function, and its output is made of
the results of its items while it is read, so that nothing is stored twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.errors import BadInput, BadOutput, NotFound, PilotlightError
from pilotlight_core.model.records.batches import BatchForm, BatchQuery, BatchRecord, ItemResult
from pilotlight_core.model.records.files import BATCH_INPUT, BATCH_OUTPUT, FileRecord
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_core.model.spec import MethodSpec, Mode
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.batches.input_lines import InputLine
from pilotlight_gateway.bodies.call_requests import wrong_shape
from pilotlight_gateway.bodies.model_readers import READERS, ModelRoute
from pilotlight_gateway.bodies.model_request import ModelRequest, RawFields
from pilotlight_gateway.bodies.worker_frames import EmbeddingsWork
from pilotlight_gateway.deploys.served_models import ServedModel
from pilotlight_gateway.files.uploaded_files import UploadedFiles
from pilotlight_gateway.http.endpoints.batches import batch_document
from pilotlight_gateway.http.openai.answer_forms import AnswerHead, Json
from pilotlight_gateway.http.openai.chat_form import chat_document
from pilotlight_gateway.http.openai.completion_form import completion_document
from pilotlight_gateway.http.openai.embedding_routes import fitted_inputs
from pilotlight_gateway.http.openai.function_inputs import EMBED, GENERATE, fitted, method_called
from pilotlight_gateway.http.openai.generated_text import GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import read_chunk
from pilotlight_gateway.http.openai.model_calls import OpenAIServices, find_version, with_adapter
from pilotlight_gateway.http.openai.whole_answers import WholeForm
from pilotlight_gateway.http.protocol.api_operations import json_answer, json_body, principal_of
from pilotlight_gateway.idempotency.key_header import KEY, read_key
from pilotlight_gateway.tenancy.timeout_limit import check_job_time

WINDOW = re.compile(r"([1-9][0-9]{0,2})h")
OUTPUT_ID = re.compile(r"file-(out|err)-([0-9a-z]{20})")
LINE_BREAK = b"\n"
FIRST_LINE_BYTES = 10 * 10**6
MOST_METADATA = 16
SUCCEEDED = frozenset({str(JobState.SUCCEEDED)})
OTHERS = frozenset(str(state) for state in JobState if state.terminal and state is not JobState.SUCCEEDED)


class CreateBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /v1/batches` as OpenAI's clients send it."""

    input_file_id: str
    endpoint: str
    completion_window: str = "24h"
    metadata: dict[str, str] | None = None


class RequestLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an input file."""

    custom_id: str
    url: str
    body: msgspec.Raw
    method: str = "POST"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """What may be asked for in batches."""

    method: str
    route: ModelRoute
    fit: Callable[[MethodSpec, RawFields, str], Any]
    form: WholeForm | None = None
    """None: embeddings."""


ENDPOINTS: Mapping[str, Endpoint] = {
    "/v1/chat/completions": Endpoint(method=GENERATE, route=ModelRoute.CHAT, fit=fitted, form=chat_document),
    "/v1/completions": Endpoint(method=GENERATE, route=ModelRoute.COMPLETION, fit=fitted, form=completion_document),
    "/v1/embeddings": Endpoint(method=EMBED, route=ModelRoute.EMBEDDING, fit=fitted_inputs),
}
_line = msgspec.json.Decoder(RequestLine)


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """A file that is made while it is read."""

    document: Json
    content: Callable[[], AsyncIterator[bytes]]


class OutputFiles:
    """Answers of batches as files."""

    def __init__(self, batches: BatchService, services: OpenAIServices) -> None:
        self._batches = batches
        self._services = services

    async def find_output(self, tenant: str, file_id: str) -> OutputFile | None:
        """The output of a batch, or its errors; None: it is no id of one.

        Raises:
            NotFound: there is no such batch, or it is not over.
        """
        if (found := OUTPUT_ID.fullmatch(file_id)) is None:
            return None
        kind, batch = found[1], f"batch_{found[2]}"
        try:
            record = await self._batches.find(tenant, batch)
        except NotFound:
            record = None
        if record is None or record.openai is None or not record.state.over:
            raise NotFound(f"There is no file {file_id!r}.", field="file_id")
        document = {
            "id": file_id, "object": "file", "bytes": 0, "created_at": int(record.ended_at),
            "filename": f"{batch}_{'output' if kind == 'out' else 'error'}.jsonl", "purpose": BATCH_OUTPUT,
            "status": "processed", "status_details": None,
        }  # fmt: skip
        states = SUCCEEDED if kind == "out" else OTHERS
        return OutputFile(document=document, content=partial(self._lines, record, states))

    async def _lines(self, record: BatchRecord, states: frozenset[str]) -> AsyncIterator[bytes]:
        results: Any = self._batches.results(record, partial(self._rendered, record), states)
        async with aclosing(results):
            async for result in results:
                yield msgspec.json.encode(output_line(result)) + LINE_BREAK

    async def _rendered(self, record: BatchRecord, job: JobRecord, output: bytes) -> bytes:
        """The answer that a client would have had to the line's request."""
        assert record.openai is not None  # noqa: S101 - it was asked before
        model, asked = record.openai.model, ENDPOINTS[record.openai.endpoint]
        try:
            if asked.form is None:
                work = EmbeddingsWork(size=len(output), model=model, count=-1, as_base64=False)
                return b"".join(await self._services.codec.embeddings(output, work, record.tenant))
            head = AnswerHead(call_id=job.id, model=model, created_at=int(job.ended_at or record.created_at))
            return await asyncio.to_thread(_answer, asked.form, head, output)
        except BadOutput as error:
            return msgspec.json.encode(
                {"error": {"message": error.detail, "type": "server_error", "code": "bad_output"}}
            )


def _answer(form: WholeForm, head: AnswerHead, output: bytes) -> bytes:
    text = GeneratedText()
    for data in _chunks_of(output):
        text.add(read_chunk(data))
    return msgspec.json.encode(form(head, text, None))


def _chunks_of(output: bytes) -> list[bytes]:
    """The chunks of a generator's output, which is their list, or what a function returned."""
    first = output[0] if output else 0
    if 0x90 <= first <= 0x9F or first in (0xDC, 0xDD):
        return [bytes(memoryview(raw)) for raw in msgspec.msgpack.decode(output, type=list[msgspec.Raw])]
    return [output]


def output_line(result: ItemResult) -> Json:
    """A line of an output file."""
    line: Json = {"id": f"batch_req_{result.id}", "custom_id": result.custom_id, "response": None, "error": None}
    if result.error is None:
        return line | {"response": {"status_code": 200, "request_id": result.id, "body": result.output}}
    return line | {"error": {"code": result.error["code"], "message": result.error["detail"]}}


class RequestBatches:
    """Submits batches of requests."""

    def __init__(self, batches: BatchService, files: UploadedFiles, services: OpenAIServices) -> None:
        self._batches = batches
        self._files = files
        self._services = services

    async def submit(self, request: Request) -> Response:
        """`POST /v1/batches` with a file of requests.

        Raises:
            BadInput: naming the field, or the line. NotFound: there is no such file.
        """
        services, principal = self._services, principal_of(request)
        asked = await read_create(request, services)
        endpoint, life_s = _endpoint(asked), _life_s(asked)
        _check_metadata(asked)
        file = await self._input(principal.tenant, asked.input_file_id)
        model = await self._first_model(file, asked.endpoint)
        found, version = await find_version(services, principal.tenant, model)
        check_job_time(services.registry, principal.tenant, version)
        whole = await services.schemas.whole(version)
        method = method_called(whole.spec, endpoint.method)
        if endpoint.form is None and method.mode is not Mode.UNARY:
            raise BadInput(f"{model} makes no embeddings.", code="bad_request", field="model")
        key = next((value for name, value in request.scope["headers"] if name == KEY), b"")
        query = BatchQuery(function=version.ref, method=method.name or None, expires_in_s=life_s)
        form = BatchForm(
            endpoint=asked.endpoint, input_file_id=file.id, model=model, completion_window=asked.completion_window,
            metadata=asked.metadata or {},
        )  # fmt: skip
        content: Any = self._files.content(file)
        async with aclosing(content):
            record = await self._batches.submit(
                principal.tenant, version, query, content, read_key(key) if key else "",
                form=form, decode=partial(decode_line, asked.endpoint, method, found),
            )  # fmt: skip
        return json_answer(batch_document(record))

    async def _input(self, tenant: str, file_id: str) -> FileRecord:
        file = await self._files.find(tenant, file_id)
        if file.purpose != BATCH_INPUT:
            raise BadInput(
                f'input_file_id: {file.id} was uploaded for "{file.purpose}": expected purpose="{BATCH_INPUT}".',
                code="bad_request", field="input_file_id",
            )  # fmt: skip
        return file

    async def _first_model(self, file: FileRecord, endpoint: str) -> str:
        """The model of a file's first line, which is that of all."""
        held = bytearray()
        content: Any = self._files.content(file)
        async with aclosing(content):
            async for piece in content:
                held += piece
                if LINE_BREAK in held.lstrip() or len(held) > FIRST_LINE_BYTES:
                    break
        line = bytes(held).lstrip().partition(LINE_BREAK)[0]
        return await asyncio.to_thread(lambda: read_line(endpoint, line)[1].model)


def read_line(endpoint: str, line: bytes) -> tuple[str, ModelRequest]:
    """A line's own name, and what it asks for. Raises BadInput."""
    try:
        read = _line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"it is no request: {error}.", field="line") from None
    if read.method != "POST":
        raise BadInput("method: expected POST.", field="method")
    if read.url != endpoint:
        raise BadInput(f"url: expected {endpoint}, as the batch says.", field="url")
    try:
        asked = READERS[ENDPOINTS[endpoint].route](bytes(memoryview(read.body)))
    except PilotlightError as error:
        raise BadInput(f"body.{error.detail}", field=f"body.{error.more.get('field', '')}".rstrip(".")) from None
    if asked.stream:
        raise BadInput("body.stream: a batch has no streams: leave it out.", field="body.stream")
    return read.custom_id, asked


def decode_line(endpoint: str, method: MethodSpec, model: ServedModel, line: bytes) -> InputLine:
    """A line as an input of the model's function. Raises BadInput."""
    custom_id, asked = read_line(endpoint, line)
    if asked.model != model.name:
        raise BadInput(f"body.model: a batch has one model: expected {model.name}.", field="body.model")
    arguments = ENDPOINTS[endpoint].fit(method, with_adapter(asked.fields, model), model.name).arguments
    values = msgspec.json.decode(msgspec.json.encode(dict(arguments)))
    return InputLine(input=values, custom_id=custom_id)


async def read_create(request: Request, services: OpenAIServices) -> CreateBatch:
    """The body of a request, whose unknown fields are ignored. Raises BadInput."""
    async with json_body(request, services.entry.budget) as body:
        try:
            return msgspec.json.decode(body, type=CreateBatch)
        except msgspec.ValidationError as error:
            refused = wrong_shape(error)
            raise BadInput(refused.detail, code="bad_request", field=refused.more["field"]) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BadInput("The body is not JSON.", code="bad_request") from None


def _endpoint(asked: CreateBatch) -> Endpoint:
    if (endpoint := ENDPOINTS.get(asked.endpoint)) is None:
        known = ", ".join(ENDPOINTS)
        raise BadInput(f"endpoint: expected one of {known}.", code="bad_request", field="endpoint")
    return endpoint


def _life_s(asked: CreateBatch) -> float:
    if (found := WINDOW.fullmatch(asked.completion_window)) is None:
        raise BadInput(
            'completion_window: expected hours, such as "24h".', code="bad_request", field="completion_window"
        )
    return float(found[1]) * 3_600.0


def _check_metadata(asked: CreateBatch) -> None:
    told = asked.metadata or {}
    if len(told) > MOST_METADATA or any(len(name) > 64 or len(value) > 512 for name, value in told.items()):
        raise BadInput(
            f"metadata: expected at most {MOST_METADATA} pairs of 64 and 512 characters.",
            code="bad_request", field="metadata",
        )  # fmt: skip
