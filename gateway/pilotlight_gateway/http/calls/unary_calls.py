"""A unary call: run while its caller waits, and answered whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec
import structlog
from starlette.types import Receive, Scope

from pilotlight_core.model.api.call_api import CallResponse, Latency
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.price_book import PriceBook
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.calls.call_port import CallPort, CallResult
from pilotlight_gateway.calls.call_responses import encode_json, encode_msgpack, is_value, json_around, response_of
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.protocol.event_answers import wait_gone
from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange, exchange_of
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics

T = TypeVar("T")
NO_RESULT = CallResult(output=b"")
WATCH_AFTER_S = 0.05
"""After which a caller's connection is watched: most calls have ended by then."""

log = structlog.get_logger(__name__)


class UnaryCalls:
    """Runs calls and sends their results."""

    def __init__(
        self, calls: CallPort, answers: CallAnswers, codec: BodyCodec, budget: ByteBudget, metrics: GatewayMetrics
    ) -> None:
        self._calls = calls
        self._answers = answers
        self._codec = codec
        self._budget = budget
        self._metrics = metrics
        self.new_id = calls.new_id
        self.address_of_home = calls.address_of_home

    async def answer(self, call: PreparedCall, answer: BodyFormat, scope: Scope, receive: Receive) -> None:
        """Run the call and send its answer, unless its caller hangs up."""
        exchange = exchange_of(scope)
        await self.send(call, await unless_gone(receive, self._run(call), exchange.task), answer, exchange)

    async def send(self, call: PreparedCall, result: CallResult, answer: BodyFormat, exchange: Exchange) -> None:
        """Send a result, as fast as the client reads."""
        body, latency = await self._answers.render(call, result, answer, exchange.request_id)
        cold_start = result.cold_start
        result = NO_RESULT  # from here on the body is what is held
        await self.send_body(exchange, call, answer, body, latency, cold_start)

    async def send_body(
        self,
        exchange: Exchange,
        call: PreparedCall,
        answer: BodyFormat,
        body: list[bytes],
        latency: Latency,
        cold_start: dict[str, float] | None,
    ) -> None:
        """Send the pieces of a body that was rendered."""
        headers = [(b"content-type", answer.value)]
        size = sum(map(len, body))
        if size <= PIECE_BYTES:
            self._metrics.call_ended(latency.stages, latency.total_ms, cold_start)
            await exchange.answer(200, headers, b"".join(body))
        else:
            with self._budget.holding(size, call.tenant):
                self._metrics.call_ended(latency.stages, latency.total_ms, cold_start)
                await answer_in_pieces(exchange, headers, body)

    async def body(self, call: PreparedCall, answer: BodyFormat, exchange: Exchange) -> bytes:
        """Run the call to its end, though its caller may hang up. Returns the body of its answer."""
        try:
            result = await self._run(call)
            body, latency = await self._answers.render(call, result, answer, exchange.request_id)
        except PilotlightError as error:
            raise redact_for_caller(error, call) from None
        self._metrics.call_ended(latency.stages, latency.total_ms, result.cold_start)
        return b"".join(body)

    def _run(self, call: PreparedCall) -> Coroutine[Any, Any, CallResult]:
        if is_value(call):
            return self._calls.run(call)
        return collect_chunks(self._calls, call, self._codec, self._budget)


class CallAnswers:
    """Renders results. `clock`: monotonic seconds."""

    def __init__(self, codec: BodyCodec, book: PriceBook, clock: Callable[[], float]) -> None:
        self._codec = codec
        self._book = book
        self._clock = clock

    async def render(
        self, call: PreparedCall, result: CallResult, answer: BodyFormat, request_id: str
    ) -> tuple[list[bytes], Latency]:
        """The body of a call's answer in pieces, and its latency by stage.

        Raises:
            BadOutput: the output violates the function's schema, or is too large for JSON.
            Unavailable: the byte budget has no room for it.
        """
        codec, version = self._codec, call.version.id
        method = call.method if is_value(call) else None  # the chunks of a generator were checked
        if answer is BodyFormat.JSON:
            output = await codec.output_json(result.output, version, method, call.tenant)
            return self._as_json(call, result, output, request_id)
        if method is not None:
            await codec.check_output(result.output, version, method, call.tenant)
        return self._as_msgpack(call, result, request_id)

    def render_now(
        self, call: PreparedCall, result: CallResult, answer: BodyFormat, request_id: str
    ) -> tuple[list[bytes], Latency]:
        """As `render`, of a function that returns a value, on the event loop.

        Raises:
            BadOutput: as `render`.
            TooManyValues: it would take too long here.
        """
        codec, version, method = self._codec, call.version.id, call.method
        if answer is BodyFormat.JSON:
            return self._as_json(call, result, [codec.output_json_now(result.output, version, method)], request_id)
        codec.check_output_now(result.output, version, method)
        return self._as_msgpack(call, result, request_id)

    def _as_json(
        self, call: PreparedCall, result: CallResult, output: list[bytes], request_id: str
    ) -> tuple[list[bytes], Latency]:
        if len(output) == 1:
            response = self._response(call, result, request_id, msgspec.Raw(output[0]))
            return [encode_json(response)], response.latency
        response = self._response(call, result, request_id)
        return json_around(lambda raw: msgspec.structs.replace(response, output=raw), output), response.latency

    def _as_msgpack(self, call: PreparedCall, result: CallResult, request_id: str) -> tuple[list[bytes], Latency]:
        response = self._response(call, result, request_id)
        return [encode_msgpack(response, result.output)], response.latency

    def _response(
        self, call: PreparedCall, result: CallResult, request_id: str, output: msgspec.Raw | None = None
    ) -> CallResponse:
        return response_of(call, result, book=self._book, at=self._clock(), request_id=request_id, output=output)


async def unless_gone(receive: Receive, work: Awaitable[T], task: asyncio.Task[Any]) -> T:
    """The result of `work`, which `task`, the current one, awaits.

    Raises:
        ClientGone: the client hung up; `work` was cancelled.
    """
    watch = _Watch(receive, task)
    try:
        return await work
    except asyncio.CancelledError:
        if watch.gone and task.uncancel() == 0:
            raise ClientGone from None
        raise
    finally:
        watch.stop()


class _Watch:
    """Cancels the task that made it.

    `stop` drops the references to timer and task, which refer to it: each cycle would be work for the garbage
    collector, which stops the loop for tens of milliseconds.
    """

    __slots__ = ("_caller", "_receive", "_start", "_task", "gone")

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self.gone = False
        self._receive = receive
        self._caller = task
        self._task: asyncio.Task[Any] | None = None
        self._start: asyncio.TimerHandle | None = task.get_loop().call_later(WATCH_AFTER_S, self._begin)

    def stop(self) -> None:
        if self._start is not None:
            self._start.cancel()
        if self._task is not None:
            self._task.cancel()
        self._start = self._task = None

    def _begin(self) -> None:
        self._start = None
        self._task = self._caller.get_loop().create_task(self._watch())

    async def _watch(self) -> None:
        try:
            await wait_gone(self._receive)
        except ClientGone:
            self.gone = True
            self._caller.cancel()
        except Exception:  # no other code reads it, and the call's answer may still be wanted
            log.exception("the caller of a call is watched no more")
