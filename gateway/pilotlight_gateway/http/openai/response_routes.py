"""`POST /v1/responses`, of which nothing is kept."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request

from pilotlight_gateway.bodies.model_readers import ModelRoute
from pilotlight_gateway.http.openai.answer_forms import AnswerHead, Json
from pilotlight_gateway.http.openai.function_inputs import GENERATE
from pilotlight_gateway.http.openai.generated_text import GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import ChunkUsage
from pilotlight_gateway.http.openai.model_calls import OpenAIServices, received_call
from pilotlight_gateway.http.openai.request_schemas import RESPONSE
from pilotlight_gateway.http.openai.response_form import ResponseStream, response_document
from pilotlight_gateway.http.openai.streamed_answers import answer_streamed
from pilotlight_gateway.http.openai.text_routes import KEYED, MODEL_ERRORS, OBJECT
from pilotlight_gateway.http.openai.whole_answers import answer_whole, head_of
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.protocol.error_dialects import Dialect


async def send_response(request: Request, services: OpenAIServices) -> None:
    """`POST /v1/responses`."""
    async with received_call(request, services, ModelRoute.RESPONSE, GENERATE) as (asked, made):
        kept = dict(asked.kept)
        if not asked.stream:
            await answer_whole(services, request, made, partial(_document, kept), asked.model)
            return
        await answer_streamed(services, request, made, ResponseStream(head_of(services, made.call, asked.model), kept))


def _document(kept: Json, head: AnswerHead, text: GeneratedText, usage: ChunkUsage | None) -> Json:
    return response_document(head, text, usage, kept)


RESPONSES = (
    Operation(
        method="POST", path="/v1/responses", name="createResponse", endpoint=send_response, scopes=("invoke",),
        about="An answer to a conversation, by a model: as OpenAI's route of that name, without what it would keep.",
        request_schemas=RESPONSE, answer=OBJECT, answer_media=("application/json", "text/event-stream"),
        errors=MODEL_ERRORS, parameters=(KEYED,), dialect=Dialect.OPENAI, rated=False, is_call=True,
    ),
)  # fmt: skip
