"""Answers that are sent while they are generated, as events that stock clients read.

Events have no names and no numbers, since these make such clients fail; a silent stream is kept alive by comments. A
stream that breaks off says so by an event with an error: one that ends without it is taken for whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import structlog
from starlette.requests import Request

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.calls.call_port import CallEvent, CallResult, ChunkEvent
from pilotlight_gateway.calls.call_responses import is_value
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.calls.event_writer import TAKEN_BYTES
from pilotlight_gateway.http.calls.stream_money import StreamSteps
from pilotlight_gateway.http.openai.answer_forms import StreamForm
from pilotlight_gateway.http.openai.answer_headers import ignored_header, processing_header
from pilotlight_gateway.http.openai.generation_chunks import read_chunk, usage_of_units
from pilotlight_gateway.http.openai.model_calls import ModelCall, OpenAIServices, failure_of
from pilotlight_gateway.http.openai.whole_answers import note_end
from pilotlight_gateway.http.protocol.drain_gate import draining_error
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, relay
from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange, exchange_of
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.streams.stream_journal import bytes_of
from pilotlight_gateway.traces.access_log import log_failure

log = structlog.get_logger(__name__)


async def answer_streamed(services: OpenAIServices, request: Request, made: ModelCall, form: StreamForm) -> None:
    """Run a call and send what it generates.

    Raises:
        ClientGone: the client hung up, and the call was cancelled.
        PilotlightError: the call failed before anything was sent.
    """
    exchange, call = exchange_of(request.scope), made.call
    admission = exchange.admission
    if admission is None or not admission.money:
        await _answer(services, request, made, form)
        return
    steps = StreamSteps(services.entry.limits, admission, call, exchange)
    steps.start()
    try:
        await _answer(services, request, made, form)
    finally:
        steps.stop()


async def _answer(services: OpenAIServices, request: Request, made: ModelCall, form: StreamForm) -> None:
    exchange, call = exchange_of(request.scope), made.call
    own = [*processing_header(services.clock() - call.arrived_at), *ignored_header(made.ignored)]
    stream = EventStream(exchange, [*HEADERS, *own])
    try:
        await relay(stream, request.receive, partial(_send_all, services, exchange, call, form, stream))
    except PilotlightError as error:
        if not exchange.status:
            raise failure_of(error, call) from None
        await _fail(services, stream, form, exchange, failure_of(error, call))
    except asyncio.CancelledError:
        if not exchange.status or (why := _why_ended(services, exchange)) is None:
            raise
        await _fail(services, stream, form, exchange, why)
    except ClientGone:
        raise
    except Exception:
        if not exchange.status:
            raise
        log.exception("a streamed answer failed unexpectedly", request_id=exchange.request_id)
        await _fail(services, stream, form, exchange, PilotlightError(code="internal"))
    await stream.finish()


class FormSender:
    """Sends chunks behind the events that their call's task has sent. It is the stream's `ChunkTaker`."""

    def __init__(self, form: StreamForm, exchange: Exchange, told: Callable[[int], None]) -> None:
        """`told` is called with how many chunks were sent."""
        self.has_begun = False
        """Whether the first event was sent."""
        self._told = told
        self._form = form
        self._exchange = exchange

    def take(self, seq: int, data: tuple[bytes, ...]) -> bool:  # noqa: ARG002 - such events have no numbers
        """See `ChunkTaker`."""
        if not self.has_begun or bytes_of(data) > TAKEN_BYTES or not self._exchange.takes_pieces:
            return False
        try:
            chunks = [read_chunk(each, counting=self._form.counts_tokens) for each in data]
        except PilotlightError:  # the call's task meets it again, and ends with it
            return False
        piece = b"".join([self._form.chunk(chunk) for chunk in chunks])
        if piece and not self._exchange.send_piece(piece):
            return False
        self._told(len(data))
        return True


async def _send_all(
    services: OpenAIServices, exchange: Exchange, call: PreparedCall, form: StreamForm, stream: EventStream
) -> None:
    """What is there goes in one write; chunks go as they come while nothing else is to be done."""
    begin = form.begin()
    sender = FormSender(form, exchange, partial(services.entry.recorder.chunks, call))
    events: Any = services.calls.stream(call, sender)
    async with aclosing(events):
        async for bunch in events:
            chunks = sum([isinstance(event, ChunkEvent) for event in bunch])
            if chunks:
                services.entry.recorder.chunks(call, chunks)
            piece = b"".join([_event(services, call, form, event) for event in bunch])
            if not piece:
                continue
            if not sender.has_begun:
                sender.has_begun, piece = True, begin + piece
            began_at = services.clock()
            await stream.send(piece)
            if (pace := call.pace) is not None:
                pace.unread_ms += (services.clock() - began_at) * 1000.0


def _event(services: OpenAIServices, call: PreparedCall, form: StreamForm, event: CallEvent) -> bytes:
    if isinstance(event, ChunkEvent):
        return form.chunk(read_chunk(event.data, counting=form.counts_tokens))
    if not isinstance(event, CallResult):
        return b""
    value = form.chunk(read_chunk(event.output)) if is_value(call) else b""
    note_end(services, call, event)
    return value + form.end(usage_of_units(event.units), event.fallback)


def _why_ended(services: OpenAIServices, exchange: Exchange) -> PilotlightError | None:
    """Why this gateway has cancelled the request, if it was it; the cancellation is undone."""
    if services.entry.gate.was_aborted(exchange.task):
        return draining_error()
    return exchange.was_revoked()


async def _fail(
    services: OpenAIServices, stream: EventStream, form: StreamForm, exchange: Exchange, error: PilotlightError
) -> None:
    services.entry.recorder.request_failed(error, exchange)
    log_failure(exchange, error)
    problem = problem_of(error, exchange.request_id, dialect=Dialect.OPENAI)
    await stream.send(form.fail(problem.document["error"]))
