"""A call as server-sent events: stages, chunks, and last its result or error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog
from starlette.types import Receive, Scope

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.price_book import PriceBook
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallEvent, CallPort, CallResult, ChunkEvent, StageEvent
from pilotlight_gateway.calls.call_responses import (
    NULL,
    base64_text,
    is_value,
    json_around,
    response_of,
    typed_response,
)
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.calls.stream_bodies import ChunkBody, TypedChunkBody
from pilotlight_gateway.http.protocol.drain_gate import DrainGate, draining_error
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, event, relay
from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange, exchange_of, log_failure
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class StreamServices:
    """The parts of the gateway that streamed calls need."""

    calls: CallPort
    gate: DrainGate
    budget: ByteBudget
    metrics: GatewayMetrics
    codec: BodyCodec
    book: PriceBook
    clock: Callable[[], float]
    """Monotonic seconds."""


class StreamedCalls:
    """Runs calls and sends their events."""

    def __init__(self, services: StreamServices) -> None:
        self._services = services

    async def answer(self, call: PreparedCall, scope: Scope, receive: Receive) -> None:
        """Run the call and send its events. An error before the first event is raised, a later one is the last event.

        Raises:
            ClientGone: the client hung up, and the call was cancelled.
        """
        exchange = exchange_of(scope)
        stream = EventStream(exchange, HEADERS)
        writer = EventWriter(
            self._services, call, exchange, typed=b"values=msgpack" in scope["query_string"].split(b"&")
        )
        events: Any = self._services.calls.stream(call)

        async def send_all() -> None:
            async with aclosing(events):
                async for happened in events:
                    piece = await writer.write(happened)
                    if len(piece) <= PIECE_BYTES:
                        await stream.send(piece)
                    else:
                        with self._services.budget.holding(len(piece), call.tenant):
                            await stream.send(piece)

        try:
            await relay(stream, receive, send_all)
        except PilotlightError as error:
            if not exchange.status:
                raise
            await self._fail(stream, exchange, redact_for_caller(error, call))
        except asyncio.CancelledError:
            if not exchange.status or (why := self._why_ended(exchange)) is None:
                raise
            await self._fail(stream, exchange, why)
        except ClientGone:
            raise
        except Exception:
            if not exchange.status:
                raise
            log.exception("a streamed call failed unexpectedly", request_id=exchange.request_id)
            await self._fail(stream, exchange, PilotlightError(code="internal"))
        await stream.finish()

    def _why_ended(self, exchange: Exchange) -> PilotlightError | None:
        """Why this gateway has cancelled the request, if it was it; the cancellation is undone."""
        if self._services.gate.was_aborted(exchange.task):
            return draining_error()
        return exchange.was_revoked()

    async def _fail(self, stream: EventStream, exchange: Exchange, error: PilotlightError) -> None:
        self._services.metrics.call_failed(error.wire_code)
        log_failure(exchange, error)
        await stream.send(event(b"error", problem_of(error, exchange.request_id, dialect=exchange.dialect).encode()))


class EventWriter:
    """Encodes the events of one call. `typed`: values as base64 of msgpack instead of JSON."""

    def __init__(self, services: StreamServices, call: PreparedCall, exchange: Exchange, *, typed: bool) -> None:
        self._services = services
        self._call = call
        self._exchange = exchange
        self._typed = typed
        self._chunks = 0

    async def write(self, happened: CallEvent) -> bytes:
        """The bytes of an event.

        Raises:
            BadOutput: the value violates the function's schema, or is too large for JSON.
        """
        if isinstance(happened, ChunkEvent):
            return await self._chunk(happened)
        if isinstance(happened, StageEvent):
            stage = {"name": happened.name, "ms": happened.ms, "detail": happened.detail}
            return event(b"stage", msgspec.json.encode(stage))
        return await self._result(happened)

    async def _chunk(self, chunk: ChunkEvent) -> bytes:
        services, call = self._services, self._call
        if not self._chunks:
            services.metrics.first_chunk.observe(services.clock() - call.arrived_at)
        self._chunks += 1
        if self._typed:
            await services.codec.check_output(chunk.data, call.version.id, call.method, call.tenant)
            return event(b"chunk", msgspec.json.encode(TypedChunkBody(chunk.seq, base64_text(chunk.data))))
        value = await services.codec.output_json(chunk.data, call.version.id, call.method, call.tenant)
        return event(b"chunk", b"".join(json_around(lambda raw: ChunkBody(chunk.seq, raw), value)))

    async def _result(self, result: CallResult) -> bytes:
        services, call = self._services, self._call
        value = [NULL]
        if is_value(call) and not self._typed:
            value = await services.codec.output_json(result.output, call.version.id, call.method, call.tenant)
        elif is_value(call):
            await services.codec.check_output(result.output, call.version.id, call.method, call.tenant)
        at, request_id = services.clock(), self._exchange.request_id
        response = response_of(call, result, book=services.book, at=at, request_id=request_id)
        services.metrics.call_ended(response.latency.stages, response.latency.total_ms, result.cold_start)
        if self._typed and is_value(call):
            return event(b"result", msgspec.json.encode(typed_response(response, result.output)))
        body = json_around(lambda raw: msgspec.structs.replace(response, output=raw), value)
        return event(b"result", b"".join(body))
