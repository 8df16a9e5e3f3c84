"""Answers that are sent whole: the call is run while its client waits, and cancelled if it hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from starlette.requests import Request

from pilotlight_core.model.errors import BadOutput, PilotlightError
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.calls.call_port import CallResult, ChunkEvent
from pilotlight_gateway.calls.call_responses import is_value
from pilotlight_gateway.calls.collected_chunks import ANSWER_BYTES
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.calls.unary_calls import unless_gone
from pilotlight_gateway.http.openai.answer_forms import AnswerHead, Json, encode_json
from pilotlight_gateway.http.openai.answer_headers import ignored_header, processing_header
from pilotlight_gateway.http.openai.generated_text import GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import ChunkUsage, read_chunk, usage_of_units
from pilotlight_gateway.http.openai.model_calls import ModelCall, OpenAIServices, failure_of
from pilotlight_gateway.http.protocol.http_exchange import exchange_of
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.idempotency.key_header import KEY

WholeForm = Callable[[AnswerHead, GeneratedText, ChunkUsage | None], Json]
THREAD_BYTES = 256 * 1024
"""A longer answer is written in a thread, which lets the loop go on."""
JSON = [(b"content-type", b"application/json")]


async def answer_whole(
    services: OpenAIServices, request: Request, made: ModelCall, form: WholeForm, model: str
) -> None:
    """Run a call and send its answer.

    Raises:
        ClientGone: the client hung up, and the call was cancelled.
        PilotlightError: the call failed.
    """
    call = made.call

    async def work() -> bytes:
        text, result, size = await _generate(services, call)
        head = head_of(services, call, model, result.fallback)
        document = form(head, text, usage_of_units(result.units))
        if size <= THREAD_BYTES:
            return encode_json(document)
        return await asyncio.to_thread(encode_json, document)

    await send_answer(services, request, made, work)


def head_of(services: OpenAIServices, call: PreparedCall, model: str, fallback: str = "") -> AnswerHead:
    """What each piece of an answer says; `fallback`: the ref of the version that answers instead."""
    return AnswerHead(
        call_id=call.call_id, model=model, created_at=int(services.wall()), version=fallback or call.version.ref
    )


async def send_answer(services: OpenAIServices, request: Request, made: ModelCall, work: Any) -> None:
    """Send what `work` makes, once for an Idempotency-Key if the request has one."""
    exchange, call, entry = exchange_of(request.scope), made.call, services.entry
    if any(name == KEY for name, _ in request.scope["headers"]):

        async def keyed() -> bytes:
            if (admission := exchange.admission) is not None and admission.policy.budgets:
                await entry.limits.reserve(admission, call)
            return await _redacted(call, work)

        await services.keyed.answer(call, BodyFormat.JSON, request.scope, keyed)
        entry.recorder.call_withdrawn(call)
        return
    body = await unless_gone(request.receive, _redacted(call, work), exchange.task)
    headers = [
        *JSON, *processing_header(services.clock() - call.arrived_at), *ignored_header(made.ignored),
    ]  # fmt: skip
    if len(body) <= PIECE_BYTES:
        await exchange.answer(200, headers, body)
        return
    with entry.budget.holding(len(body), call.tenant):
        await answer_in_pieces(exchange, headers, [body])


async def _redacted(call: PreparedCall, work: Any) -> bytes:
    try:
        done: bytes = await work()
    except PilotlightError as error:
        raise failure_of(error, call) from None
    return done


async def _generate(services: OpenAIServices, call: PreparedCall) -> tuple[GeneratedText, CallResult, int]:
    """What the function generates, and how many bytes that were."""
    text = GeneratedText()
    if is_value(call):
        result = await services.calls.run(call)
        text.add(read_chunk(result.output))
        note_end(services, call, result)
        return text, result, len(result.output)
    budget, held = services.entry.budget, 0
    events: Any = services.calls.stream(call)
    try:
        async with aclosing(events):
            async for bunch in events:
                for event in bunch:
                    if isinstance(event, CallResult):
                        note_end(services, call, event)
                        return text, event, held
                    if isinstance(event, ChunkEvent):
                        budget.take(len(event.data), call.tenant)
                        held += len(event.data)
                        if held > ANSWER_BYTES:
                            raise BadOutput("The answer is more than 10 MB: ask for a stream.")
                        text.add(read_chunk(event.data))
        raise PilotlightError("The stream of the call ended without a result.")
    finally:
        budget.give_back(held, call.tenant)


def note_end(services: OpenAIServices, call: PreparedCall, result: CallResult) -> None:
    """Count a call that has ended well."""
    services.entry.recorder.request_ended(call, result)
