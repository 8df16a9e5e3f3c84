"""`/v1/files`: what clients upload for batches, and what batches have answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.records.files import FILE_BYTES, KEPT_S, file_document
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.files.multipart_reader import (
    MultipartReader,
    PartBegins,
    PartContent,
    PartEnds,
    boundary_of,
)
from pilotlight_gateway.files.uploaded_files import PART_BYTES, FileForm, UploadedFiles, check_kept, check_purpose
from pilotlight_gateway.http.openai.files.request_batches import OutputFiles
from pilotlight_gateway.http.protocol.api_operations import (
    Operation,
    Parameter,
    json_answer,
    principal_of,
)
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.event_answers import EventStream, relay
from pilotlight_gateway.http.protocol.http_exchange import exchange_of, header
from pilotlight_gateway.http.protocol.list_pages import PAGE, page_of
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, pieces
from pilotlight_gateway.limits.tenant_slots import TenantSlots

UPLOAD = BodyLimits(size=FILE_BYTES + 64 * 1024, window=10.0)
HELD_BYTES = 3 * PART_BYTES
"""Memory of one upload: a piece, a part, and the part as it is stored."""
ORDERS = ("asc", "desc")
LONGEST_FIELD = 1_024
"""Bytes of a field of a form that is no file."""
OBJECT: dict[str, Any] = {"type": "object"}
FORM = "multipart/form-data"
FILE, PURPOSE, KEPT, ANCHOR = "file", "purpose", "expires_after[seconds]", "expires_after[anchor]"


@dataclass(frozen=True, kw_only=True)
class FileServices:
    """The ports of these endpoints."""

    files: UploadedFiles
    outputs: OutputFiles
    budget: ByteBudget
    gate: DrainGate
    uploads: TenantSlots


class UploadForm:
    """A form as it is read: the content of its file passes through, its fields stay."""

    def __init__(self, boundary: bytes, arriving: AsyncIterator[bytes]) -> None:
        self._reader = MultipartReader(boundary)
        self._arriving = arriving
        self._fields: dict[str, str] = {}
        self._file: str | None = None

    async def content(self) -> AsyncIterator[bytes]:
        """The content of the file. Raises BadInput, also for a form without one, or with two."""
        within, field = False, ""
        text = bytearray()
        async for piece in self._arriving:
            for event in self._reader.feed(piece):
                if isinstance(event, PartBegins):
                    within, field = event.name == FILE, event.name
                    text.clear()
                    if within:
                        self._begin_file(event)
                elif isinstance(event, PartContent):
                    if within:
                        yield event.data
                        continue
                    text += event.data
                    if len(text) > LONGEST_FIELD:
                        raise _bad(field[:64], f"longer than {LONGEST_FIELD} bytes")
                elif isinstance(event, PartEnds) and not within:
                    self._fields[field] = text.decode("utf-8", "replace")
        if not self._reader.is_over:
            raise _bad("body", "the form broke off")
        if self._file is None:
            raise _bad(FILE, "it is missing")

    def described(self) -> FileForm:
        """What the form says of its file. Raises BadInput."""
        purpose = check_purpose(self._fields.get(PURPOSE, ""))
        if self._fields.get(ANCHOR, "created_at") != "created_at":
            raise _bad(ANCHOR, "expected created_at")
        kept = self._fields.get(KEPT)
        return FileForm(name=self._file or "", purpose=purpose, kept_s=KEPT_S if kept is None else check_kept(kept))

    def _begin_file(self, event: PartBegins) -> None:
        if self._file is not None:
            raise _bad(FILE, "there are two")
        self._file = event.file_name or ""


async def upload_file(request: Request, services: FileServices) -> Response:
    """`POST /v1/files`."""
    principal, scope = principal_of(request), request.scope
    boundary = boundary_of(header(scope, b"content-type"))
    gate = services.gate.around(exchange_of(scope).task)
    with gate, services.uploads.slot(principal.tenant), services.budget.holding(HELD_BYTES, principal.tenant):
        arriving: Any = pieces(scope, request.receive, UPLOAD)
        async with aclosing(arriving):
            form = UploadForm(boundary, arriving)
            content: Any = form.content()
            async with aclosing(content):
                record = await services.files.store(principal, content, form.described)
    return json_answer(file_document(record))


async def show_files(request: Request, services: FileServices) -> Response:
    """`GET /v1/files`."""
    found = services.files.listed(principal_of(request).tenant)
    if purpose := request.query_params.get("purpose"):
        found = [record for record in found if record.purpose == purpose]
    if (order := request.query_params.get("order", "desc")) not in ORDERS:
        raise BadInput(f"order: expected {' or '.join(ORDERS)}.", field="order")
    if order == "asc":
        found.reverse()
    return json_answer(page_of(request, [file_document(record) for record in found]))


async def show_file(request: Request, services: FileServices) -> Response:
    """`GET /v1/files/{file}`."""
    tenant, named = _named(request)
    if (output := await services.outputs.find_output(tenant, named)) is not None:
        return json_answer(output.document)
    return json_answer(file_document(await services.files.find(tenant, named)))


async def delete_file(request: Request, services: FileServices) -> Response:
    """`DELETE /v1/files/{file}`."""
    tenant, named = _named(request)
    if await services.outputs.find_output(tenant, named) is not None:
        raise BadInput("The output of a batch is kept as long as the batch is.", code="bad_request", field="file_id")
    record = await services.files.delete(tenant, named)
    return json_answer({"id": record.id, "object": "file", "deleted": True})


async def show_content(request: Request, services: FileServices) -> None:
    """`GET /v1/files/{file}/content`."""
    tenant, named = _named(request)
    output = await services.outputs.find_output(tenant, named)
    headers = [(b"content-type", b"application/octet-stream"), (b"cache-control", b"no-store")]
    if output is not None:
        content: Any = output.content()
    else:
        record = await services.files.find(tenant, named)
        headers.append((b"content-length", b"%d" % record.size))
        content = services.files.content(record)
    # Nothing may stand between two pieces of a file, so a silent one is kept alive by nothing.
    stream = EventStream(exchange_of(request.scope), headers, keepalive=b"")

    async def send_all() -> None:
        async with aclosing(content):
            async for piece in content:
                await stream.send(piece)

    with services.budget.holding(PART_BYTES, tenant):
        await relay(stream, request.receive, send_all)
        await stream.finish()


def _named(request: Request) -> tuple[str, str]:
    return principal_of(request).tenant, request.path_params["file"]


def _bad(field: str, why: str) -> BadInput:
    return BadInput(f"{field}: {why}.", code="bad_request", field=field)


UPLOAD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        PURPOSE: {"type": "string", "enum": ["batch", "user_data", "evals"]},
        FILE: {"type": "string", "format": "binary"},
    },
    "required": [PURPOSE, FILE],
}
"""Other purposes are taken too."""
FILES = (
    Operation(
        method="POST", path="/v1/files", name="uploadFile", endpoint=upload_file, scopes=("invoke",), answer=OBJECT,
        about="Upload a file, such as the input of a batch: as OpenAI's route of that name.",
        request_media=(FORM,), request_schemas={FORM: UPLOAD_SCHEMA}, dialect=Dialect.OPENAI, rated=False,
        errors=("bad_request", "too_large", "unsupported_media_type", "slow_body", "deadline_exceeded",
                "quota_exceeded", "rate_limited", "overloaded", "draining"),
    ),
    Operation(
        method="GET", path="/v1/files", name="listFiles", endpoint=show_files, scopes=("invoke", "read"),
        about="The files, the newest first.", answer=OBJECT, dialect=Dialect.OPENAI, errors=("bad_input", "not_found"),
        parameters=(
            *PAGE, Parameter(name="purpose", about="Only those for this purpose."),
            Parameter(name="order", about="asc: the oldest first.", schema={"enum": list(ORDERS)}),
        ),
    ),
    Operation(
        method="GET", path="/v1/files/{file}", name="getFile", endpoint=show_file, scopes=("invoke", "read"),
        about="A file.", answer=OBJECT, dialect=Dialect.OPENAI, errors=("not_found", "overloaded"),
    ),
    Operation(
        method="DELETE", path="/v1/files/{file}", name="deleteFile", endpoint=delete_file, scopes=("invoke",),
        about="Delete a file with its content.", answer=OBJECT, dialect=Dialect.OPENAI,
        errors=("not_found", "bad_request", "overloaded"),
    ),
    Operation(
        method="GET", path="/v1/files/{file}/content", name="getFileContent", endpoint=show_content,
        scopes=("invoke", "read"), about="What is in a file.", answer={"type": "string", "format": "binary"},
        answer_media=("application/octet-stream",), dialect=Dialect.OPENAI, errors=("not_found", "overloaded"),
    ),
)  # fmt: skip
