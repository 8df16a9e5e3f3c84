"""`POST /v1/embeddings`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import MethodSpec, Mode
from pilotlight_gateway.bodies.embedding_requests import INPUT
from pilotlight_gateway.bodies.model_readers import ModelRoute
from pilotlight_gateway.bodies.model_request import ModelRequest, RawFields
from pilotlight_gateway.bodies.worker_frames import EmbeddingsWork
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.openai.function_inputs import EMBED, FittedInput, parameters_of
from pilotlight_gateway.http.openai.model_calls import ModelCall, OpenAIServices, received_call
from pilotlight_gateway.http.openai.request_schemas import EMBEDDING
from pilotlight_gateway.http.openai.text_routes import KEYED, MODEL_ERRORS, OBJECT
from pilotlight_gateway.http.openai.whole_answers import note_end, send_answer
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.protocol.error_dialects import Dialect


async def embed(request: Request, services: OpenAIServices) -> None:
    """`POST /v1/embeddings`."""
    async with received_call(request, services, ModelRoute.EMBEDDING, EMBED, fitted_inputs) as (asked, made):
        await _embed(request, services, made, asked)


async def _embed(request: Request, services: OpenAIServices, made: ModelCall, asked: ModelRequest) -> None:
    call = made.call
    if call.method.mode is not Mode.UNARY:
        raise BadInput(f"{asked.model} generates text, and makes no embeddings.", code="bad_request", field="model")

    async def work() -> bytes:
        result = await services.calls.run(call)
        note_end(services, call, result)
        return b"".join(await _written(services, call, result, asked))

    await send_answer(services, request, made, work)


async def _written(
    services: OpenAIServices, call: PreparedCall, result: CallResult, asked: ModelRequest
) -> list[bytes]:
    tokens = (result.units or {}).get("prompt_tokens")
    work = EmbeddingsWork(
        size=len(result.output), model=asked.model, count=asked.count, as_base64=asked.as_base64, prompt_tokens=tokens
    )
    return await services.codec.embeddings(result.output, work, call.tenant)


def fitted_inputs(method: MethodSpec, fields: RawFields, model: str) -> FittedInput:
    """The texts under the name of the one parameter that is a list of texts.

    Raises:
        BadInput: there is none, or `dimensions` are asked for that nothing goes by.
    """
    taken = parameters_of(method)
    if taken is not None and "dimensions" in fields and "dimensions" not in taken:
        raise BadInput(f"dimensions is not supported by {model}: leave it out.", code="bad_request", field="dimensions")
    if taken is None or INPUT in taken:
        return FittedInput(fields, ())
    lists = [name for name, schema in taken.items() if _is_texts(schema)]
    if len(lists) != 1:
        raise BadInput(
            f"{model} makes no embeddings: its function has no parameter that is a list of texts.",
            code="bad_request", field="model",
        )  # fmt: skip
    return FittedInput({lists[0] if name == INPUT else name: raw for name, raw in fields.items()}, ())


def _is_texts(schema: Any) -> bool:
    if not isinstance(schema, dict) or schema.get("type") != "array":
        return False
    items = schema.get("items", {})
    return isinstance(items, dict) and items.get("type", "string") == "string"


EMBEDDINGS = (
    Operation(
        method="POST", path="/v1/embeddings", name="createEmbeddings", endpoint=embed, scopes=("invoke",),
        about="Vectors that stand for texts, by a model: as OpenAI's route of that name.",
        request_schemas=EMBEDDING, answer=OBJECT, errors=MODEL_ERRORS, parameters=(KEYED,),
        dialect=Dialect.OPENAI, rated=False, is_call=True,
    ),
)  # fmt: skip
