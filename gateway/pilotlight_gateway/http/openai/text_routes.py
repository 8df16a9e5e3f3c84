"""`POST /v1/chat/completions` and `POST /v1/completions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.http.openai.answer_forms import StreamForm
from pilotlight_gateway.http.openai.chat_form import ChatStream, chat_document
from pilotlight_gateway.http.openai.completion_form import CompletionStream, completion_document
from pilotlight_gateway.http.openai.function_inputs import GENERATE
from pilotlight_gateway.http.openai.generation_requests import GenerationRequest, read_chat, read_completion
from pilotlight_gateway.http.openai.model_calls import OpenAIServices, prepare_call, read_request
from pilotlight_gateway.http.openai.request_schemas import CHAT, COMPLETION
from pilotlight_gateway.http.openai.streamed_answers import answer_streamed
from pilotlight_gateway.http.openai.whole_answers import WholeForm, answer_whole, head_of
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, Parameter
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.http_exchange import exchange_of

OBJECT: dict[str, Any] = {"type": "object"}
MODEL_ERRORS = (
    *(code for code in BODY if code != "bad_input"), "model_not_found", "too_many_tokens", "queue_full",
    "rate_limited", "cancelled",
    "function_raised", "load_failed", "bad_output", "container_died", "preempted", "no_capacity", "draining",
    "overloaded", "misconfigured", "execution_timeout", "idempotency_key_in_use", "idempotency_key_reused",
    "answer_not_kept", "budget_exhausted", "breaker_open", "starting",
)  # fmt: skip
KEYED = Parameter(
    name="Idempotency-Key", where="header",
    about="A repeated request with the same key gets the first one's answer. Not with stream=true.",
    schema={"type": "string", "minLength": 1, "maxLength": 255},
)  # fmt: skip
MakeStream = Callable[..., StreamForm]


async def send_chat(request: Request, services: OpenAIServices) -> None:
    """`POST /v1/chat/completions`."""
    await _generate(request, services, read_chat, chat_document, ChatStream)


async def send_completion(request: Request, services: OpenAIServices) -> None:
    """`POST /v1/completions`."""
    await _generate(request, services, read_completion, completion_document, CompletionStream)


async def _generate(
    request: Request,
    services: OpenAIServices,
    read: Callable[[bytes], GenerationRequest],
    whole: WholeForm,
    streamed: MakeStream,
) -> None:
    exchange, entry = exchange_of(request.scope), services.entry
    with entry.gate.around(exchange.task):
        body = await read_request(request, entry)
        size = len(body)
        try:
            asked = read(body)
            made = await prepare_call(
                services, request, asked.fields, model=asked.model, method_name=GENERATE, size=size,
                stream=asked.stream, ignored=asked.ignored,
            )  # fmt: skip
            model, stream, include_usage = asked.model, asked.stream, asked.include_usage
            del asked, body  # from here on the call's input is what is held
            if not stream:
                await answer_whole(services, request, made, whole, model)
                return
            head = head_of(services, made.call, model)
            await answer_streamed(services, request, made, streamed(head, include_usage=include_usage))
        except PilotlightError as error:
            entry.metrics.call_failed(error.wire_code)
            raise
        finally:
            entry.budget.give_back(size, exchange.principal.tenant)


TEXT = (
    Operation(
        method="POST", path="/v1/chat/completions", name="createChatCompletion", endpoint=send_chat,
        about="The next message of a chat, by a model: as OpenAI's route of that name.", scopes=("invoke",),
        request_schemas=CHAT, answer=OBJECT, answer_media=("application/json", "text/event-stream"),
        errors=MODEL_ERRORS, parameters=(KEYED,), dialect=Dialect.OPENAI, rated=False, is_call=True,
    ),
    Operation(
        method="POST", path="/v1/completions", name="createCompletion", endpoint=send_completion,
        about="How a text goes on, by a model: as OpenAI's route of that name.", scopes=("invoke",),
        request_schemas=COMPLETION, answer=OBJECT, answer_media=("application/json", "text/event-stream"),
        errors=MODEL_ERRORS, parameters=(KEYED,), dialect=Dialect.OPENAI, rated=False, is_call=True,
    ),
)  # fmt: skip
