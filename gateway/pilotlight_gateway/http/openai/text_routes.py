"""`POST /v1/chat/completions` and `POST /v1/completions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from pilotlight_gateway.bodies.model_readers import ModelRoute
from pilotlight_gateway.http.openai.answer_forms import StreamForm
from pilotlight_gateway.http.openai.chat_form import ChatStream, chat_document
from pilotlight_gateway.http.openai.completion_form import CompletionStream, completion_document
from pilotlight_gateway.http.openai.function_inputs import GENERATE
from pilotlight_gateway.http.openai.model_calls import OpenAIServices, received_call
from pilotlight_gateway.http.openai.request_schemas import CHAT, COMPLETION
from pilotlight_gateway.http.openai.streamed_answers import answer_streamed
from pilotlight_gateway.http.openai.whole_answers import WholeForm, answer_whole, head_of
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, Parameter
from pilotlight_gateway.http.protocol.error_dialects import Dialect

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
    await _generate(request, services, ModelRoute.CHAT, chat_document, ChatStream)


async def send_completion(request: Request, services: OpenAIServices) -> None:
    """`POST /v1/completions`."""
    await _generate(request, services, ModelRoute.COMPLETION, completion_document, CompletionStream)


async def _generate(
    request: Request, services: OpenAIServices, route: ModelRoute, whole: WholeForm, streamed: MakeStream
) -> None:
    async with received_call(request, services, route, GENERATE) as (asked, made):
        if not asked.stream:
            await answer_whole(services, request, made, whole, asked.model)
            return
        head = head_of(services, made.call, asked.model)
        form = streamed(head, include_usage=asked.include_usage, usage_so_far=asked.usage_so_far)
        await answer_streamed(services, request, made, form)


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
