"""A call as server-sent events: stages, chunks, and last its result or error."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Any

import structlog
from starlette.types import Receive, Scope

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.calls.event_writer import ChunkSender, EventWriter, StreamServices
from pilotlight_gateway.http.calls.kept_answer import KeptAnswers, resume_seconds
from pilotlight_gateway.http.protocol.drain_gate import draining_error
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, event, relay
from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange, exchange_of
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.traces.access_log import log_failure

log = structlog.get_logger(__name__)


class StreamedCalls:
    """Runs calls and sends their events."""

    def __init__(self, services: StreamServices) -> None:
        self._services = services
        self._kept = KeptAnswers(services)

    async def answer(self, call: PreparedCall, scope: Scope, receive: Receive) -> None:
        """Run the call and send its events. An error before the first event is raised, a later one is the last event.

        Raises:
            ClientGone: the client hung up, and the call was cancelled, unless its events can be read again.
        """
        if resume_s := resume_seconds(call, scope):
            await self._kept.answer(call, resume_s, scope, receive)
            return
        exchange = exchange_of(scope)
        stream = EventStream(exchange, HEADERS)
        writer = EventWriter(
            self._services, call, exchange, typed=b"values=msgpack" in scope["query_string"].split(b"&")
        )
        try:
            await relay(stream, receive, partial(self._send_all, call, writer, stream))
        except PilotlightError as error:
            if not exchange.status:
                raise
            await self._fail(stream, writer, exchange, redact_for_caller(error, call))
        except asyncio.CancelledError:
            if not exchange.status or (why := self._why_ended(exchange)) is None:
                raise
            await self._fail(stream, writer, exchange, why)
        except ClientGone:
            raise
        except Exception:
            if not exchange.status:
                raise
            log.exception("a streamed call failed unexpectedly", request_id=exchange.request_id)
            await self._fail(stream, writer, exchange, PilotlightError(code="internal"))
        await stream.finish()

    async def _send_all(self, call: PreparedCall, writer: EventWriter, stream: EventStream) -> None:
        """What is there goes in one write; chunks go as they come while nothing else is to be done."""
        events: Any = self._services.calls.stream(call, ChunkSender(writer))
        async with aclosing(events):
            async for bunch in events:
                written = 0
                while written < len(bunch):
                    count, piece = writer.write_now(bunch, written)
                    if not count:
                        count, piece = 1, await writer.write(bunch[written])
                    written += count
                    await self._send(call, stream, piece)

    async def _send(self, call: PreparedCall, stream: EventStream, piece: bytes) -> None:
        began_at = self._services.clock()
        if len(piece) <= PIECE_BYTES:
            await stream.send(piece)
        else:
            with self._services.budget.holding(len(piece), call.tenant):
                await stream.send(piece)
        if (pace := call.pace) is not None:
            pace.unread_ms += (self._services.clock() - began_at) * 1000.0

    def _why_ended(self, exchange: Exchange) -> PilotlightError | None:
        """Why this gateway has cancelled the request, if it was it; the cancellation is undone."""
        if self._services.gate.was_aborted(exchange.task):
            return draining_error()
        return exchange.was_revoked()

    async def _fail(self, stream: EventStream, writer: EventWriter, exchange: Exchange, error: PilotlightError) -> None:
        self._services.recorder.request_failed(error, exchange)
        log_failure(exchange, error)
        problem = problem_of(error, exchange.request_id, dialect=exchange.dialect).encode()
        await stream.send(event(b"error", problem, writer.last))
