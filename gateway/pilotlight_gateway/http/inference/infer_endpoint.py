"""`POST /v2/models/{model}/infer`: a plain ASGI application, since a call is no request that counts as open."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import BadInput, PilotlightError
from pilotlight_gateway.http.calls.unary_calls import unless_gone
from pilotlight_gateway.http.inference.body_codings import (
    LEAST_BYTES,
    coded_body,
    coding_wanted,
    held_plain,
    plain_body,
)
from pilotlight_gateway.http.inference.model_calls import ModelCalls, refuse_streams
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.protocol.audited_changes import make_audited
from pilotlight_gateway.http.protocol.http_exchange import Exchange, authorization, exchange_of, header
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.http.protocol.request_bodies import read_body
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tensors.infer_bodies import HEADER_LENGTH, infer_answer
from pilotlight_gateway.tensors.infer_requests import InferCall
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor

OCTETS, JSON = b"application/octet-stream", b"application/json"
DIGITS_AT_MOST = 12


class InferEndpoint:
    """Serves one path of the operation."""

    def __init__(self, operation: Operation[None], calls: ModelCalls) -> None:
        self.operation = operation
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the exchange sends
        entry, exchange = self._calls.entry, exchange_of(scope)
        exchange.route, exchange.dialect = self.operation.path, self.operation.dialect
        principal = await entry.authenticator.authenticate(authorization(scope))
        exchange.note_principal(principal)
        if principal.break_glass:
            await self._refuse_audited(principal, scope, exchange)
        principal.require("invoke")
        path = scope["path_params"]
        with entry.gate.around(exchange.task):
            model = await self._calls.lookup.find(principal.tenant, path["model"], path.get("version", ""))
            refuse_streams(model)
            limits = await self._calls.admit(exchange, model)
            body = await read_body(scope, receive, limits, entry.budget, principal.tenant)
            size, coding = len(body), header(scope, b"content-encoding")
            try:
                with held_plain(entry.budget, coding, body, limits, principal.tenant):
                    asked = await self._read(await plain_body(body, coding, limits), model, scope, principal.tenant)
                del body
                await self._answer(asked, model, scope, receive)
            except PilotlightError as error:
                entry.metrics.call_failed(error.wire_code)
                raise
            finally:
                entry.budget.give_back(size, principal.tenant)

    async def _read(self, body: bytes, model: FoundModel, scope: Scope, tenant: str) -> InferCall:
        said = header(scope, HEADER_LENGTH)
        length = len(body)
        if said:
            length = int(said) if said.isdigit() and len(said) <= DIGITS_AT_MOST else -1
        if not 0 < length <= len(body):
            raise BadInput(
                f"Inference-Header-Content-Length: expected how many of the body's {len(body)} bytes are JSON.",
                code="bad_request",
            )
        return await self._calls.codec.read_infer(body, length, model.method, tenant)

    async def _answer(self, asked: InferCall, model: FoundModel, scope: Scope, receive: Receive) -> None:
        exchange = exchange_of(scope)
        exchange.begin_call(self._calls.new_id())
        exchange.home = self._calls.home_of(model)
        call = await self._calls.prepare(exchange, model, asked, header(scope, b"traceparent"))
        tensors = await unless_gone(receive, self._calls.run(call, model, asked), exchange.task)
        await self._send(tensors, asked, model, exchange, coding_wanted(header(scope, b"accept-encoding")))

    async def _send(
        self, tensors: list[WrittenTensor], asked: InferCall, model: FoundModel, exchange: Exchange, coding: bytes
    ) -> None:
        pieces, json_bytes = infer_answer(model.name, model.number, asked.id, tensors)
        headers = [(b"content-type", JSON if json_bytes is None else OCTETS)]
        if json_bytes is not None:
            headers.append((HEADER_LENGTH, b"%d" % json_bytes))
        size, tenant = sum(map(len, pieces)), exchange.principal.tenant
        with self._calls.entry.budget.holding(size if size > PIECE_BYTES else 0, tenant):
            if coding and size >= LEAST_BYTES:
                pieces = [await coded_body(pieces, coding)]
                headers.append((b"content-encoding", coding))
            if size <= PIECE_BYTES:
                await exchange.answer(200, headers, b"".join(pieces))
            else:
                await answer_in_pieces(exchange, headers, pieces)

    async def _refuse_audited(self, principal: Principal, scope: Scope, exchange: Exchange) -> None:
        """Write down that a key that calls nothing has tried to."""

        async def refuse() -> Response | None:
            principal.require("invoke")
            return None

        await make_audited(self._calls.entry.audit, self.operation, scope, exchange, refuse)
