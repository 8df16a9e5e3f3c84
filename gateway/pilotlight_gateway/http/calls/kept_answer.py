"""A call as server-sent events that outlive their connection: its client may come back for what follows.

The request that began the call lasts as long as the call, as far as limits, money, keys and the end of the gateway are
concerned. Its connection is the first reader of the events; `call_events` serves the others.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import structlog
from msgspec import UNSET
from starlette.types import Receive, Scope

from pilotlight_core.model.errors import BadInput, Cancelled, PilotlightError
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.streams.resuming import MOST_RESUME_S
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.calls.event_writer import EventWriter, StreamServices
from pilotlight_gateway.http.protocol.drain_gate import draining_error
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, event, send_source
from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange, exchange_of, header
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.streams.kept_stream import KeptStream
from pilotlight_gateway.streams.stream_exchange import LocalSource
from pilotlight_gateway.traces.access_log import log_failure

RESUME_S = b"pilotlight-resume-s"
"""The header that asks for so many seconds, and says how many there are."""

log = structlog.get_logger(__name__)


def resume_seconds(call: PreparedCall, scope: Scope) -> float:
    """For how long the call's stream goes on without a reader; 0: it ends with its connection.

    Raises:
        BadInput: the header is no such number.
    """
    if text := header(scope, RESUME_S):
        try:
            seconds = float(text[:20])
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= MOST_RESUME_S:
            raise BadInput(
                f"Pilotlight-Resume-S: expected 0 to {MOST_RESUME_S:g} seconds, not {text[:20].decode('latin-1')!r}.",
                field="Pilotlight-Resume-S",
            )
        return seconds
    resumable = call.version.spec.resumable
    return resumable.resume_s if resumable is not UNSET and call.method.mode is Mode.GENERATOR else 0.0


class KeptAnswers:
    """Runs calls, and keeps their events for whoever reads them."""

    def __init__(self, services: StreamServices) -> None:
        self._services = services

    async def answer(self, call: PreparedCall, resume_s: float, scope: Scope, receive: Receive) -> None:
        """Run the call to its end, and send its events while its client is there.

        Raises:
            PilotlightError: how it failed, before anything was sent.
            ClientGone: the client hung up, which has not ended the call.
        """
        exchange, keeper = exchange_of(scope), self._services.keeper
        stream = EventStream(exchange, [*HEADERS, (RESUME_S, b"%g" % resume_s)])
        typed = b"values=msgpack" in scope["query_string"].split(b"&")
        writer = EventWriter(self._services, call, exchange, typed=typed)
        kept = keeper.open(call.call_id, call.tenant, resume_s)
        refused: PilotlightError | None = None
        try:
            async with asyncio.TaskGroup() as group:
                client = group.create_task(send_source(LocalSource(kept, 0), stream, receive))
                failure = await self._run(group, call, writer, kept, exchange)
                if failure is not None and not exchange.status and not client.done():
                    refused = failure
                    client.cancel()
                elif failure is not None:
                    self._fail(kept, writer, exchange, failure)
        finally:
            keeper.close(kept)
        if refused is not None:
            raise refused
        if not client.result():
            raise ClientGone

    async def _run(
        self, group: asyncio.TaskGroup, call: PreparedCall, writer: EventWriter, kept: KeptStream, exchange: Exchange
    ) -> PilotlightError | None:
        """Run the call until it ends, nobody reads it any more, or its request is ended; why it has failed."""
        work = group.create_task(self._keep_all(call, writer, kept, exchange))
        watch = group.create_task(kept.wait_abandoned())
        why: PilotlightError | None = None
        try:
            await asyncio.wait((work, watch), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if (why := self._why_ended(exchange)) is None:
                raise
            if work.done():  # at the same moment, and its last event is there: nothing comes behind it
                why = None
        if why is None and not work.done():
            why = Cancelled(f"Nobody has read the stream for {kept.resume_s:g} s.")
        watch.cancel()
        if why is not None:
            work.cancel()
        await asyncio.wait((work,))
        return why if why is not None or work.cancelled() else work.result()

    async def _keep_all(
        self, call: PreparedCall, writer: EventWriter, kept: KeptStream, exchange: Exchange
    ) -> PilotlightError | None:
        """Keep one event after the other; why the call has failed."""
        events: Any = self._services.calls.stream(call)
        try:
            async with aclosing(events):
                async for bunch in events:
                    for happened in bunch:
                        count, piece = writer.write_now([happened], 0)
                        if not count:
                            piece = await writer.write(happened)
                        if isinstance(happened, CallResult):
                            kept.end(writer.number + 1, piece)
                        else:
                            await kept.put(writer.number, piece)
        except PilotlightError as error:
            return redact_for_caller(error, call)
        except Exception:
            log.exception("a streamed call failed unexpectedly", request_id=exchange.request_id)
            return PilotlightError(code="internal")
        return None

    def _why_ended(self, exchange: Exchange) -> PilotlightError | None:
        """Why this gateway has cancelled the request, if it was it; the cancellation is undone."""
        if self._services.gate.was_aborted(exchange.task):
            return draining_error()
        return exchange.was_revoked()

    def _fail(self, kept: KeptStream, writer: EventWriter, exchange: Exchange, error: PilotlightError) -> None:
        self._services.recorder.request_failed(error, exchange)
        log_failure(exchange, error)
        problem = problem_of(error, exchange.request_id, dialect=exchange.dialect).encode()
        kept.end(writer.number + 1, event(b"error", problem, writer.last))
