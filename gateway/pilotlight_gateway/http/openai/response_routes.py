"""`POST /v1/responses`, of which nothing is kept."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.http.openai.answer_forms import AnswerHead, Json
from pilotlight_gateway.http.openai.function_inputs import GENERATE
from pilotlight_gateway.http.openai.generated_text import GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import TokenUsage
from pilotlight_gateway.http.openai.model_calls import OpenAIServices, prepare_call, read_request
from pilotlight_gateway.http.openai.request_schemas import RESPONSE
from pilotlight_gateway.http.openai.response_form import ResponseStream, response_document
from pilotlight_gateway.http.openai.response_requests import read_response
from pilotlight_gateway.http.openai.streamed_answers import answer_streamed
from pilotlight_gateway.http.openai.text_routes import KEYED, MODEL_ERRORS, OBJECT
from pilotlight_gateway.http.openai.whole_answers import answer_whole, head_of
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.http_exchange import exchange_of


async def send_response(request: Request, services: OpenAIServices) -> None:
    """`POST /v1/responses`."""
    exchange, entry = exchange_of(request.scope), services.entry
    with entry.gate.around(exchange.task):
        body = await read_request(request, entry)
        size = len(body)
        try:
            asked, kept = read_response(body)
            made = await prepare_call(
                services, request, asked.fields, model=asked.model, method_name=GENERATE, size=size,
                stream=asked.stream, ignored=asked.ignored,
            )  # fmt: skip
            model, stream = asked.model, asked.stream
            del asked, body  # from here on the call's input is what is held
            if not stream:
                await answer_whole(services, request, made, partial(_document, kept), model)
                return
            head = head_of(services, made.call, model)
            await answer_streamed(services, request, made, ResponseStream(head, kept))
        except PilotlightError as error:
            entry.metrics.call_failed(error.wire_code)
            raise
        finally:
            entry.budget.give_back(size, exchange.principal.tenant)


def _document(kept: Json, head: AnswerHead, text: GeneratedText, usage: TokenUsage | None) -> Json:
    return response_document(head, text, usage, kept)


RESPONSES = (
    Operation(
        method="POST", path="/v1/responses", name="createResponse", endpoint=send_response, scopes=("invoke",),
        about="An answer to a conversation, by a model: as OpenAI's route of that name, without what it would keep.",
        request_schemas=RESPONSE, answer=OBJECT, answer_media=("application/json", "text/event-stream"),
        errors=MODEL_ERRORS, parameters=(KEYED,), dialect=Dialect.OPENAI, rated=False, is_call=True,
    ),
)  # fmt: skip
