"""A unary call: run while its caller waits, and answered whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

import structlog
from starlette.types import Receive, Scope

from pilotlight_core.model.api.call_api import Latency
from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.calls.call_port import CallPort, CallResult, without_output
from pilotlight_gateway.calls.call_responses import (
    CallAnswers,
    is_value,
)
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.protocol.event_answers import wait_gone
from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange, exchange_of
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.metrics.call_recorder import CallRecorder

T = TypeVar("T")
WATCH_AFTER_S = 0.05
"""After which a caller's connection is watched: most calls have ended by then."""

log = structlog.get_logger(__name__)


class UnaryCalls:
    """Runs calls and sends their results."""

    def __init__(
        self, calls: CallPort, answers: CallAnswers, codec: BodyCodec, budget: ByteBudget, recorder: CallRecorder
    ) -> None:
        self._calls = calls
        self._answers = answers
        self._codec = codec
        self._budget = budget
        self._recorder = recorder
        self.new_id = calls.new_id
        self.address_of_home = calls.address_of_home

    async def answer(self, call: PreparedCall, answer: BodyFormat, scope: Scope, receive: Receive) -> None:
        """Run the call and send its answer, unless its caller hangs up."""
        exchange = exchange_of(scope)
        await self.send(call, await unless_gone(receive, self._run(call), exchange.task), answer, exchange)

    async def send(self, call: PreparedCall, result: CallResult, answer: BodyFormat, exchange: Exchange) -> None:
        """Send a result, as fast as the client reads."""
        body, latency = await self._answers.render(call, result, answer, exchange.request_id)
        result = without_output(result)  # from here on the body is what is held
        await self.send_body(exchange, call, answer, body, latency, result)

    async def send_body(
        self,
        exchange: Exchange,
        call: PreparedCall,
        answer: BodyFormat,
        body: list[bytes],
        latency: Latency,
        result: CallResult,
    ) -> None:
        """Send the pieces of a body that was rendered; `result` has no output."""
        headers = [(b"content-type", answer.value)]
        size = sum(map(len, body))
        if size <= PIECE_BYTES:
            self._recorder.call_ended(call, result, latency.stages, latency.total_ms)
            await exchange.answer(200, headers, b"".join(body))
        else:
            with self._budget.holding(size, call.tenant):
                self._recorder.call_ended(call, result, latency.stages, latency.total_ms)
                await answer_in_pieces(exchange, headers, body)

    async def body(self, call: PreparedCall, answer: BodyFormat, request_id: str) -> bytes:
        """Run the call to its end, though its caller may hang up. Returns the body of its answer."""
        try:
            result = await self._run(call)
            body, latency = await self._answers.render(call, result, answer, request_id)
        except PilotlightError as error:
            raise redact_for_caller(error, call) from None
        self._recorder.call_ended(call, result, latency.stages, latency.total_ms)
        return b"".join(body)

    def _run(self, call: PreparedCall) -> Coroutine[Any, Any, CallResult]:
        if is_value(call):
            return self._calls.run(call)
        return collect_chunks(self._calls, call, self._codec, self._budget)


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
