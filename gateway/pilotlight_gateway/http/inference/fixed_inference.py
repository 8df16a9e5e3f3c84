"""The fixed inference API: `POST /v1/inference`, `GET /internal/health`, `GET /internal/requests/{id}`.

It keeps nothing of its own: a request is a call, by whose id it is asked for as long as the platform knows the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from pilotlight_core.model.errors import BadInput, PilotlightError, UnknownCall
from pilotlight_core.model.ids import CALL_ID
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat, format_of_body
from pilotlight_gateway.bodies.json_structs import read_json
from pilotlight_gateway.calls.call_port import CallPort, CallResult
from pilotlight_gateway.calls.call_responses import NULL, json_around
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.calls.unary_calls import unless_gone
from pilotlight_gateway.http.inference.inference_requests import (
    InferenceAnswer,
    InferenceMetadata,
    InferenceRequest,
    InferenceStatus,
)
from pilotlight_gateway.http.inference.model_calls import ModelCalls
from pilotlight_gateway.http.inference.model_endpoints import check_ready
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.http.protocol.api_operations import json_answer, principal_of
from pilotlight_gateway.http.protocol.http_exchange import exchange_of, header
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.http.protocol.readiness import Readiness
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, read_body, too_large
from pilotlight_gateway.tensors.infer_requests import InferCall
from pilotlight_gateway.tensors.value_kinds import parameter_kinds

BODY = BodyLimits(size=2**20)
"""Read at once, before it is known whose function it is for; what is larger goes to the function's own route."""
TOKENS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True, kw_only=True)
class RequestServices:
    """The ports of what is told of requests."""

    calls: CallPort
    readiness: Readiness


async def show_front_health(_: Request, services: RequestServices) -> Response:
    """`GET /internal/health`."""
    check_ready(services.readiness)
    return json_answer({"status": "healthy"})


async def show_request(request: Request, services: RequestServices) -> Response:
    """`GET /internal/requests/{id}`: of the caller's tenant alone."""
    asked: str = request.path_params["id"]
    if not CALL_ID.fullmatch(asked):
        raise UnknownCall(f"{asked[:100]!r} is not a request's id: expected call_… as POST /v1/inference gave it.")
    found = await services.calls.status(principal_of(request).tenant, asked)
    return json_answer(
        InferenceStatus(
            request_id=found.id, status=found.state, model_version=found.version, age_ms=found.age_ms, error=found.error
        )
    )


class FixedInference:
    """Answers `POST /v1/inference`, of callers that were let in. `clock`: monotonic seconds."""

    def __init__(self, models: ModelCalls, calls: CallPort, clock: Callable[[], float]) -> None:
        self._models = models
        self._calls = calls
        self._clock = clock

    async def answer(self, scope: Scope, receive: Receive) -> None:
        """Call the model that the body names.

        Raises:
            PilotlightError: what is wrong, or how the call failed. ClientGone.
        """
        exchange, budget = exchange_of(scope), self._budget
        tenant = exchange.principal.tenant
        if format_of_body(header(scope, b"content-type")) is not BodyFormat.JSON:
            raise BadInput("This takes application/json only.", code="unsupported_media_type")
        body = await read_body(scope, receive, BODY, budget, tenant)
        size = len(body)
        try:
            asked = read_json(body, InferenceRequest, patient=False)
            del body
            model = await self._models.lookup.find(tenant, asked.model)
            limits = await self._models.admit(exchange, model)
            if size > limits.size:
                raise too_large(limits)
            exchange.begin_call(self._models.new_id())
            exchange.home = self._models.home_of(model)
            infer = InferCall(id="", body=call_body(asked, model))
            call = await self._models.prepare(exchange, model, infer, scope["headers"])
            await self._send(call, await unless_gone(receive, self._result(call), exchange.task), scope)
        finally:
            budget.give_back(size, tenant)

    @property
    def _budget(self) -> ByteBudget:
        return self._models.entry.budget

    async def _result(self, call: PreparedCall) -> CallResult:
        try:
            if call.stream:
                return await collect_chunks(self._calls, call, self._models.codec, self._budget)
            return await self._calls.run(call)
        except PilotlightError as error:
            raise redact_for_caller(error, call) from None

    async def _send(self, call: PreparedCall, result: CallResult, scope: Scope) -> None:
        exchange, method = exchange_of(scope), None if call.stream else call.method  # chunks were checked
        output = await self._models.codec.output_json(result.output, call.version.id, method, call.tenant)
        total_ms, stages = (self._clock() - call.arrived_at) * 1000, dict(result.stages)
        stages["respond"] = max(0.0, total_ms - sum(stages.values()))
        self._models.entry.recorder.call_ended(call, result, stages, total_ms)
        units = result.units or {}
        told = InferenceMetadata(
            tokens_used=sum(units.get(name, 0) for name in TOKENS), latency_ms=total_ms, model_version=call.version.ref
        )
        pieces = json_around(
            lambda raw: InferenceAnswer(request_id=call.call_id, output=raw, metadata=told), output or [NULL]
        )
        headers = [(b"content-type", b"application/json")]
        if sum(map(len, pieces)) <= PIECE_BYTES:
            await exchange.answer(200, headers, b"".join(pieces))
        else:
            with self._budget.holding(sum(map(len, pieces)), call.tenant):
                await answer_in_pieces(exchange, headers, pieces)


def call_body(asked: InferenceRequest, model: FoundModel) -> bytes:
    """The `CallRequest` that it stands for, as msgpack.

    Raises:
        BadInput: the function has no parameter for its input, or one stands in both parts.
    """
    names = list(parameter_kinds(model.method))
    if isinstance(asked.input, dict) and (asked.input.keys() <= set(names) or not model.method.input_schema):
        arguments = asked.input
    elif names:
        arguments = {names[0]: asked.input}
    else:
        raise BadInput(f"input: {model.name} takes no parameters: expected {{}}.", field="input")
    if model.adapter:
        arguments = {**arguments, "adapter": model.adapter}
    said = {"input": arguments, "parameters": asked.parameters, "method": model.method.name or None}
    try:
        return msgspec.msgpack.encode(said)
    except (OverflowError, TypeError, RecursionError) as error:
        raise BadInput(f"input: it cannot travel: {error}.", field="input") from None
