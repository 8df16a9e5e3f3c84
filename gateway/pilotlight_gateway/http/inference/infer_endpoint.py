"""`POST /v2/models/{model}/infer`: tensors in JSON, or as bytes behind it."""

from __future__ import annotations

from starlette.types import Receive, Scope

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.http.calls.unary_calls import unless_gone
from pilotlight_gateway.http.inference.body_codings import (
    LEAST_BYTES,
    coded_body,
    coding_wanted,
    held_plain,
    plain_body,
)
from pilotlight_gateway.http.inference.model_calls import ModelCalls, refuse_generation, refuse_streams
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.http.protocol.http_exchange import Exchange, exchange_of, header
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.http.protocol.request_bodies import read_body
from pilotlight_gateway.tensors.infer_bodies import HEADER_LENGTH, infer_answer
from pilotlight_gateway.tensors.infer_requests import InferCall
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor

OCTETS, JSON = b"application/octet-stream", b"application/json"
DIGITS_AT_MOST = 12


class InferEndpoint:
    """Answers requests for tensors, of callers that were let in."""

    def __init__(self, calls: ModelCalls) -> None:
        self._calls = calls

    async def answer(self, scope: Scope, receive: Receive) -> None:
        """Call the model that the path names.

        Raises:
            PilotlightError: what is wrong, or how the call failed. ClientGone.
        """
        exchange, budget, path = exchange_of(scope), self._calls.entry.budget, scope["path_params"]
        tenant = exchange.principal.tenant
        model = await self._calls.lookup.find(tenant, path["model"], path.get("version", ""))
        limits = await self._calls.admit(exchange, model)
        refuse_generation(model)
        refuse_streams(model)
        body = await read_body(scope, receive, limits, budget, tenant)
        size, coding = len(body), header(scope, b"content-encoding")
        try:
            with held_plain(budget, coding, body, limits, tenant):
                asked = await self._read(await plain_body(body, coding, limits), model, scope, tenant)
            del body
            await self._answer(asked, model, scope, receive)
        finally:
            budget.give_back(size, tenant)

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
        call = await self._calls.prepare(exchange, model, asked, scope["headers"])
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
