"""The body of a unary call's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilotlight_core.model.api.call_api import Latency
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallResult, PreparedCall
from pilotlight_gateway.calls.call_requests import BodyFormat
from pilotlight_gateway.calls.call_responses import (
    checked_value,
    encode_json,
    encode_msgpack,
    is_value,
    read_value,
    response_of,
)
from pilotlight_gateway.http.calls.call_reader import THREAD_BYTES
from pilotlight_gateway.ledger.price_book import PriceBook
from pilotlight_gateway.schemas.schema_validators import Validators


class CallAnswers:
    """Renders results. `clock`: monotonic seconds."""

    def __init__(self, validators: Validators, book: PriceBook, budget: ByteBudget, clock: Callable[[], float]) -> None:
        self._validators = validators
        self._book = book
        self._budget = budget
        self._clock = clock

    async def render(
        self, call: PreparedCall, result: CallResult, answer: BodyFormat, request_id: str
    ) -> tuple[bytes, Latency]:
        """The body of a call's answer, and where its time went.

        Raises:
            BadOutput: the function returned what its type hints exclude. Unavailable: there is no memory for it.
        """
        if len(result.output) <= THREAD_BYTES:
            return self._render(call, result, answer, request_id)
        with self._budget.holding(len(result.output), call.tenant):
            return await asyncio.to_thread(self._render, call, result, answer, request_id)

    def _render(
        self, call: PreparedCall, result: CallResult, answer: BodyFormat, request_id: str
    ) -> tuple[bytes, Latency]:
        as_json = answer is BodyFormat.JSON
        value = None
        if is_value(call):
            value = checked_value(self._validators, call, result.output, look=as_json)
        elif as_json:
            value = read_value(result.output)
        response = response_of(call, result, value, book=self._book, at=self._clock(), request_id=request_id)
        body = encode_json(response) if as_json else encode_msgpack(response, result.output)
        return body, response.latency
