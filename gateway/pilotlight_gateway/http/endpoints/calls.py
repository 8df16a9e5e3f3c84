"""`POST /v1/functions/{ref}/calls`: the one path that must be lean.

It is a plain ASGI application: the request's head is read once, a warm call creates no task and no timer beyond two
handles, and validators, refs and keys come from memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from starlette.types import Receive, Scope, Send

from pilotlight_core.model.api.call_api import CallRequest, Latency
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.spec import MethodSpec, Mode, VersionRecord
from pilotlight_gateway.calls.call_port import CallResult, PreparedCall
from pilotlight_gateway.calls.call_requests import (
    BodyFormat,
    format_of_answer,
    format_of_body,
    pack_arguments,
    priority_of,
    read_call,
    seconds_to_wait,
)
from pilotlight_gateway.calls.call_responses import (
    checked_value,
    encode_json,
    encode_msgpack,
    is_value,
    read_value,
    response_of,
)
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.endpoints.call_limits import admit, usage_of_call
from pilotlight_gateway.http.endpoints.call_stream import stream_call
from pilotlight_gateway.http.endpoints.call_watch import unless_gone
from pilotlight_gateway.http.endpoints.jobs import accept_job, refuse_job_fields, wants_async
from pilotlight_gateway.http.endpoints.keyed_calls import answer_keyed
from pilotlight_gateway.http.protocol.exchange import Exchange, exchange_of
from pilotlight_gateway.http.protocol.http_services import HttpServices
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, read_body
from pilotlight_gateway.idempotency.key_header import KEY, PREFER
from pilotlight_gateway.tenancy.scheduling_class import scheduling_class_of

PREFIX = "/v1/functions/"
SUFFIX = "/calls"
CALL_BODY = BodyLimits(size=10 * 10**6 + 64 * 1024)
"""10 MB of payload and what stands around it."""
THREAD_BYTES = 256 * 1024
"""Beyond it a body is read in a thread, so that other calls get their turns in between."""


class CallEndpoint:
    """Takes calls."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    @staticmethod
    def serves(scope: Scope) -> bool:
        """Whether a request is for this endpoint."""
        path: str = scope["path"]
        return (
            scope["method"] == "POST"
            and len(path) > len(PREFIX) + len(SUFFIX)
            and path.startswith(PREFIX)
            and path.endswith(SUFFIX)
            and "/" not in path[len(PREFIX) : -len(SUFFIX)]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the exchange sends
        services, exchange = self._services, exchange_of(scope)
        exchange.route = "/v1/functions/{ref}/calls"
        headers = dict(scope["headers"])
        principal = exchange.principal = await services.authenticator.authenticate(headers.get(b"authorization", b""))
        principal.require("invoke")
        answer = format_of_answer(headers.get(b"accept", b""))
        kind = format_of_body(headers.get(b"content-type", b""))
        with services.gate.around(exchange.task):
            version = await services.resolver.resolve(principal.tenant, scope["path"][len(PREFIX) : -len(SUFFIX)])
            as_job = wants_async(headers.get(PREFER, b""))
            part = LimitAskKind.SUBMISSION if as_job else LimitAskKind.CALL
            limits = await admit(services, exchange, version, CALL_BODY, part)
            body = await read_body(scope, receive, limits, services.budget, principal.tenant)
            size = len(body)
            try:
                exchange.call_id = services.calls.new_id()
                request, call = await self._prepared(scope, headers, version, body, kind, answer)
                del body  # from here on `call.input` is what is held
                if as_job:
                    await accept_job(services, call, request, answer, scope, headers)
                    return
                refuse_job_fields(request)
                if KEY in headers:
                    await answer_keyed(services, call, answer, scope, partial(self._whole, call, answer, exchange))
                else:
                    await self._run(call, answer, scope, receive)
            except PilotlightError as error:
                services.metrics.call_failed(error.wire_code)
                raise
            finally:
                services.budget.give_back(size, principal.tenant)

    async def _prepared(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        version: VersionRecord,
        body: bytes,
        kind: BodyFormat,
        answer: BodyFormat,
    ) -> tuple[CallRequest, PreparedCall]:
        if len(body) > THREAD_BYTES:
            request, method, packed = await asyncio.to_thread(self._read, version, body, kind)
        else:
            request, method, packed = self._read(version, body, kind)
        exchange, spec = exchange_of(scope), version.spec
        tenant = exchange.principal.tenant
        standing = scheduling_class_of(
            self._services.registry, tenant, f"{version.tenant}:{version.app}.{version.function}"
        )
        patience = seconds_to_wait(request.deadline_ms, spec.timeout + spec.startup_timeout)
        call = PreparedCall(
            id=exchange.call_id,
            client_id=request.id,
            tenant=tenant,
            version=version,
            method=method,
            input=packed,
            priority=standing.lowered(priority_of(spec.priority, headers.get(b"pilotlight-priority", b""))),
            standing=standing,
            deadline=exchange.arrived + patience,
            arrived=exchange.arrived,
            stream=answer is BodyFormat.EVENTS or method.mode is not Mode.UNARY,
            traceparent=headers.get(b"traceparent", b"")[:64].decode("latin-1"),
            gateway_ms=(self._services.clock() - exchange.arrived) * 1000,
            tab=usage_of_call(exchange),
        )
        return request, call

    def _read(self, version: VersionRecord, body: bytes, kind: BodyFormat) -> tuple[CallRequest, MethodSpec, bytes]:
        asked = read_call(body, kind)
        method = version.spec.method(asked.request.method)
        self._services.validators.check_input(version.id, method, asked.arguments, asked.given)
        return asked.request, method, pack_arguments(asked.arguments)

    async def _run(self, call: PreparedCall, answer: BodyFormat, scope: Scope, receive: Receive) -> None:
        try:
            if answer is BodyFormat.EVENTS:
                await stream_call(self._services, call, scope, receive)
            else:
                await self._unary(call, answer, scope, receive)
        except PilotlightError as error:
            raise redact_for_caller(error, call) from None

    async def _unary(self, call: PreparedCall, answer: BodyFormat, scope: Scope, receive: Receive) -> None:
        services, exchange = self._services, exchange_of(scope)
        work = services.calls.run(call) if is_value(call) else self._all_chunks(call)
        result = await unless_gone(receive, work, exchange.task)
        body, latency = await self._rendered(call, result, answer, exchange)
        cold_start = result.cold_start
        del result  # from here on the body is what is held
        headers = [(b"content-type", answer.value)]
        if len(body) <= PIECE_BYTES:
            services.metrics.call_ended(latency.stages, latency.total_ms, cold_start)
            await exchange.answer(200, headers, body)
        else:
            with services.budget.holding(len(body), call.tenant):
                services.metrics.call_ended(latency.stages, latency.total_ms, cold_start)
                await answer_in_pieces(exchange, headers, body)

    async def _whole(self, call: PreparedCall, answer: BodyFormat, exchange: Exchange) -> bytes:
        """The body of a unary call's answer, which is awaited though nobody may be there to read it."""
        try:
            result = await (self._services.calls.run(call) if is_value(call) else self._all_chunks(call))
            body, latency = await self._rendered(call, result, answer, exchange)
        except PilotlightError as error:
            raise redact_for_caller(error, call) from None
        self._services.metrics.call_ended(latency.stages, latency.total_ms, result.cold_start)
        return body

    async def _rendered(
        self, call: PreparedCall, result: CallResult, answer: BodyFormat, exchange: Exchange
    ) -> tuple[bytes, Latency]:
        if len(result.output) <= THREAD_BYTES:
            return self._render(call, result, answer, exchange.request_id)
        with self._services.budget.holding(len(result.output), call.tenant):
            return await asyncio.to_thread(self._render, call, result, answer, exchange.request_id)

    def _render(
        self, call: PreparedCall, result: CallResult, answer: BodyFormat, request_id: str
    ) -> tuple[bytes, Latency]:
        services, as_json = self._services, answer is BodyFormat.JSON
        value = None
        if is_value(call):
            value = checked_value(services.validators, call, result.output, look=as_json)
        elif as_json:
            value = read_value(result.output)
        response = response_of(
            call, result, value, book=services.ledger.book, at=services.clock(), request_id=request_id
        )
        body = encode_json(response) if as_json else encode_msgpack(response, result.output)
        return body, response.latency

    def _all_chunks(self, call: PreparedCall) -> Coroutine[Any, Any, CallResult]:
        services = self._services
        return collect_chunks(services.calls, call, services.validators, services.budget)
