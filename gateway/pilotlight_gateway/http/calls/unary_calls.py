"""A unary call: run while its caller waits, and answered whole."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from starlette.types import Receive, Scope

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort, CallResult, PreparedCall
from pilotlight_gateway.calls.call_requests import BodyFormat
from pilotlight_gateway.calls.call_responses import is_value
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.calls.call_answers import CallAnswers
from pilotlight_gateway.http.calls.call_watch import unless_gone
from pilotlight_gateway.http.protocol.http_exchange import Exchange, exchange_of
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.schemas.schema_validators import Validators


class UnaryCalls:
    """Runs calls and sends their results."""

    def __init__(
        self, calls: CallPort, answers: CallAnswers, validators: Validators, budget: ByteBudget, metrics: GatewayMetrics
    ) -> None:
        self._calls = calls
        self._answers = answers
        self._validators = validators
        self._budget = budget
        self._metrics = metrics
        self.new_id = calls.new_id

    async def answer(self, call: PreparedCall, answer: BodyFormat, scope: Scope, receive: Receive) -> None:
        """Run the call and send its answer, unless its caller hangs up meanwhile."""
        exchange = exchange_of(scope)
        result = await unless_gone(receive, self._run(call), exchange.task)
        body, latency = await self._answers.render(call, result, answer, exchange.request_id)
        cold_start = result.cold_start
        del result  # from here on the body is what is held
        headers = [(b"content-type", answer.value)]
        if len(body) <= PIECE_BYTES:
            self._metrics.call_ended(latency.stages, latency.total_ms, cold_start)
            await exchange.answer(200, headers, body)
        else:
            with self._budget.holding(len(body), call.tenant):
                self._metrics.call_ended(latency.stages, latency.total_ms, cold_start)
                await answer_in_pieces(exchange, headers, body)

    async def body(self, call: PreparedCall, answer: BodyFormat, exchange: Exchange) -> bytes:
        """The body of a call's answer; it is run to its end though its caller may have hung up."""
        try:
            result = await self._run(call)
            body, latency = await self._answers.render(call, result, answer, exchange.request_id)
        except PilotlightError as error:
            raise redact_for_caller(error, call) from None
        self._metrics.call_ended(latency.stages, latency.total_ms, result.cold_start)
        return body

    def _run(self, call: PreparedCall) -> Coroutine[Any, Any, CallResult]:
        if is_value(call):
            return self._calls.run(call)
        return collect_chunks(self._calls, call, self._validators, self._budget)
