"""The events of one streamed call as bytes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallEvent, CallPort, CallResult, ChunkEvent, StageEvent
from pilotlight_gateway.calls.call_responses import NULL, is_value, json_around, response_of, typed_response
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.event_answers import event
from pilotlight_gateway.http.protocol.http_exchange import Exchange
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.streams.stream_journal import bytes_of
from pilotlight_gateway.streams.stream_keeper import StreamKeeper

CHUNK: Final = event(b"chunk", b'{"seq":%b,"value":%b}', b"%b")
TYPED_CHUNK: Final = event(b"chunk", b'{"seq":%b,"value_b64":"%b"}', b"%b")
"""By the number in digits, which are worked out once: that costs more than all else of it."""
TAKEN_BYTES: Final = 4 * 1024
"""Of the chunks of one message that are written as they come; what is more is for the call's task."""


@dataclass(frozen=True, kw_only=True)
class StreamServices:
    """The parts of the gateway that streamed calls need."""

    calls: CallPort
    gate: DrainGate
    budget: ByteBudget
    recorder: CallRecorder
    codec: BodyCodec
    book: PriceBook
    keeper: StreamKeeper
    clock: Callable[[], float]
    """Monotonic seconds."""


class EventWriter:
    """Encodes the events of one call. `typed`: values as base64 of msgpack instead of JSON."""

    def __init__(self, services: StreamServices, call: PreparedCall, exchange: Exchange, *, typed: bool) -> None:
        self._services = services
        self._call = call
        self.exchange = exchange
        self._typed = typed
        self._version = call.version.id
        self._at_once = services.codec.at_once
        self.number = 0
        """Of the last chunk; the result, or the error, has the next one."""

    @property
    def last(self) -> bytes:
        """The number of the event behind the last chunk."""
        return b"%d" % (self.number + 1)

    def write_now(self, bunch: list[CallEvent], first: int) -> tuple[int, bytes]:
        """The bytes of the events from `first` on, as one piece, and how many events these are.

        It ends before an event that takes long or is wrong, which is for `write`, so that nothing waits for that one.
        """
        pieces: list[bytes] = []
        size, before = 0, self.number
        try:
            for happened in bunch[first:]:
                pieces.append(piece := self._event(happened, self._value_now(happened)))
                size += len(piece)
                if size >= PIECE_BYTES // 2:
                    break
        except (TooManyValues, PilotlightError):
            pass
        if self.number != before:
            self._services.recorder.chunks(self._call, self.number - before)
        return len(pieces), pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def write(self, happened: CallEvent) -> bytes:
        """The bytes of one event.

        Raises:
            BadOutput: the value violates the function's schema, or is too large for JSON.
        """
        if not self._has_value(happened):
            return self._event(happened, [NULL])
        codec, version, method = self._services.codec, self._version, self._call.method
        data, tenant = _data_of(happened), self._call.tenant
        if self._typed:
            await codec.check_output(data, version, method, tenant)
            value = [data]
        else:
            value = await codec.output_json(data, version, method, tenant)
        if isinstance(happened, ChunkEvent):
            self._services.recorder.chunks(self._call, 1)
        return self._event(happened, value)

    def _event(self, happened: CallEvent, value: list[bytes]) -> bytes:
        """The bytes of an event; `value`: its JSON, or its msgpack, in pieces."""
        if isinstance(happened, ChunkEvent):
            return self._chunk(happened, value)
        if isinstance(happened, StageEvent):
            stage = {"name": happened.name, "ms": happened.ms, "detail": happened.detail}
            return event(b"stage", msgspec.json.encode(stage))
        return self._result(happened, value)

    def _has_value(self, happened: CallEvent) -> bool:
        return isinstance(happened, ChunkEvent) or (isinstance(happened, CallResult) and is_value(self._call))

    def _value_now(self, happened: CallEvent) -> list[bytes]:
        """Raises TooManyValues and BadOutput."""
        if not self._has_value(happened):
            return [NULL]
        data = _data_of(happened)
        if self._typed:
            self._at_once.check_output(data, self._version, self._call.method)
            return [data]
        return [self._at_once.output_json(data, self._version, self._call.method)]

    def _chunk(self, chunk: ChunkEvent, value: list[bytes]) -> bytes:
        self.number = chunk.seq
        number = b"%d" % chunk.seq
        if self._typed:
            return TYPED_CHUNK % (number, number, b64encode(value[0]))
        return CHUNK % (number, number, value[0] if len(value) == 1 else b"".join(value))

    def chunks_now(self, seq: int, data: tuple[bytes, ...]) -> bytes:
        """The bytes of chunks that are not the first ones, `seq` the number of the first of them.

        Raises:
            TooManyValues, PilotlightError: one of them takes long, or is wrong.
        """
        at_once, version, method, typed = self._at_once, self._version, self._call.method, self._typed
        pieces: list[bytes] = []
        for each in data:
            number = b"%d" % seq
            if typed:
                at_once.check_output(each, version, method)
                pieces.append(TYPED_CHUNK % (number, number, b64encode(each)))
            else:
                pieces.append(CHUNK % (number, number, at_once.output_json(each, version, method)))
            seq += 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)  # one, as nearly all of an engine

    def count_taken(self, chunks: int) -> None:
        """Count chunks that were sent without its task."""
        self._services.recorder.chunks(self._call, chunks)

    def _result(self, result: CallResult, value: list[bytes]) -> bytes:
        services, call = self._services, self._call
        at, request_id = services.clock(), self.exchange.request_id
        response = response_of(call, result, book=services.book, at=at, request_id=request_id)
        services.recorder.call_ended(call, result, response.latency.stages, response.latency.total_ms)
        if self._typed and is_value(call):
            return event(b"result", msgspec.json.encode(typed_response(response, result.output)), self.last)
        body = json_around(lambda raw: msgspec.structs.replace(response, output=raw), value)
        return event(b"result", b"".join(body), self.last)


class ChunkSender:
    """Sends the chunks of one call behind the events that its task has sent. It is the stream's `ChunkTaker`."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer
        self._exchange = writer.exchange

    def take(self, seq: int, data: tuple[bytes, ...]) -> bool:
        """See `ChunkTaker`."""
        writer = self._writer
        if not writer.number or bytes_of(data) > TAKEN_BYTES:
            return False
        try:
            piece = writer.chunks_now(seq, data)
        except Exception:  # noqa: BLE001 - the call's task meets it again, and ends with it
            return False
        if not self._exchange.send_piece(piece):
            return False
        writer.number = seq + len(data) - 1
        writer.count_taken(len(data))
        return True


def _data_of(happened: CallEvent) -> bytes:
    """The msgpack of the event's value."""
    if isinstance(happened, ChunkEvent):
        return happened.data
    return happened.output if isinstance(happened, CallResult) else b""
