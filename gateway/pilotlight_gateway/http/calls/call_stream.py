"""A call as server-sent events: stages, chunks, and last its result or error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import structlog
from starlette.types import Receive, Scope

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallEvent, CallPort, CallResult, ChunkEvent, StageEvent
from pilotlight_gateway.calls.call_responses import (
    ChunkBody,
    TypedChunkBody,
    base64_text,
    checked_value,
    encode_json,
    is_value,
    response_of,
    typed_response,
)
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.protocol.drain_gate import DrainGate, draining_error
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, event, relay
from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange, exchange_of
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.ledger.price_book import PriceBook
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.schemas.schema_validators import Validators

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class StreamServices:
    """The parts of the gateway that streamed calls need."""

    calls: CallPort
    gate: DrainGate
    budget: ByteBudget
    metrics: GatewayMetrics
    validators: Validators
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
                    piece = writer.write(happened)
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
            if not exchange.status or not self._services.gate.was_aborted(exchange.task):
                raise
            await self._fail(stream, exchange, draining_error())
        except ClientGone:
            raise
        except Exception:
            if not exchange.status:
                raise
            log.exception("a streamed call failed unexpectedly", request_id=exchange.request_id)
            await self._fail(stream, exchange, PilotlightError(code="internal"))
        await stream.finish()

    async def _fail(self, stream: EventStream, exchange: Exchange, error: PilotlightError) -> None:
        self._services.metrics.call_failed(error.wire_code)
        await stream.send(event(b"error", problem_of(error, exchange.request_id).encode()))


class EventWriter:
    """Encodes the events of one call. `typed`: values as base64 of msgpack instead of JSON."""

    def __init__(self, services: StreamServices, call: PreparedCall, exchange: Exchange, *, typed: bool) -> None:
        self._services = services
        self._call = call
        self._exchange = exchange
        self._typed = typed
        self._chunks = 0

    def write(self, happened: CallEvent) -> bytes:
        """The bytes of an event.

        Raises:
            BadOutput: the value violates the function's schema.
        """
        if isinstance(happened, ChunkEvent):
            return self._chunk(happened)
        if isinstance(happened, StageEvent):
            return event(b"stage", encode_json({"name": happened.name, "ms": happened.ms, "detail": happened.detail}))
        return self._result(happened)

    def _chunk(self, chunk: ChunkEvent) -> bytes:
        if not self._chunks:
            self._services.metrics.first_chunk.observe(self._services.clock() - self._call.arrived_at)
        self._chunks += 1
        value = checked_value(self._services.validators, self._call, chunk.data, look=not self._typed)
        if self._typed:
            return event(b"chunk", encode_json(TypedChunkBody(chunk.seq, base64_text(chunk.data))))
        return event(b"chunk", encode_json(ChunkBody(chunk.seq, value)))

    def _result(self, result: CallResult) -> bytes:
        services, call = self._services, self._call
        value = None
        if is_value(call):
            value = checked_value(services.validators, call, result.output, look=not self._typed)
        response = response_of(
            call,
            result,
            None if self._typed else value,
            book=services.book,
            at=services.clock(),
            request_id=self._exchange.request_id,
        )
        services.metrics.call_ended(response.latency.stages, response.latency.total_ms, result.cold_start)
        if self._typed and is_value(call):
            response = typed_response(response, result.output)
        return event(b"result", encode_json(response))
