"""`POST /v1/embeddings`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
from starlette.requests import Request

from pilotlight_core.model.errors import BadInput, PilotlightError
from pilotlight_core.model.spec import MethodSpec, Mode
from pilotlight_gateway.bodies.worker_frames import EmbeddingsWork
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.openai.function_inputs import EMBED, FittedInput, parameters_of
from pilotlight_gateway.http.openai.generation_requests import missing, read_model, read_value
from pilotlight_gateway.http.openai.model_calls import ModelCall, OpenAIServices, prepare_call, read_request
from pilotlight_gateway.http.openai.request_fields import RawFields, read_fields
from pilotlight_gateway.http.openai.request_schemas import EMBEDDING
from pilotlight_gateway.http.openai.text_routes import KEYED, MODEL_ERRORS, OBJECT
from pilotlight_gateway.http.openai.whole_answers import note_end, send_answer
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.http_exchange import exchange_of

KNOWN = frozenset({"model", "input", "encoding_format", "dimensions"})
FORMATS = ("float", "base64")
MOST_INPUTS = 2_048
INPUT = "input"
"""The parameter of engines."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingRequest:
    """What a request comes to."""

    model: str
    count: int
    """Texts."""
    as_base64: bool
    fields: RawFields
    ignored: tuple[str, ...] = ()


def read_embedding(body: bytes) -> EmbeddingRequest:
    """Read the body of a request for embeddings.

    Raises:
        BadInput: `bad_request`, naming the field.
    """
    known, unknown = read_fields(body, KNOWN)
    model = read_model(known)
    form: str = read_value(known, "encoding_format", str, default="float")
    if form not in FORMATS:
        raise BadInput(
            f"encoding_format: expected {' or '.join(FORMATS)}.", code="bad_request", field="encoding_format"
        )
    texts, count = _texts(known)
    fields = {INPUT: texts} | {name: known[name] for name in ("dimensions",) if name in known}
    return EmbeddingRequest(model=model, count=count, as_base64=form == "base64", fields=fields, ignored=unknown)


async def embed(request: Request, services: OpenAIServices) -> None:
    """`POST /v1/embeddings`."""
    exchange, entry = exchange_of(request.scope), services.entry
    with entry.gate.around(exchange.task):
        body = await read_request(request, entry)
        size = len(body)
        try:
            asked = read_embedding(body)
            made = await prepare_call(
                services, request, asked.fields, model=asked.model, method_name=EMBED, size=size,
                ignored=asked.ignored, fit=fitted_inputs,
            )  # fmt: skip
            asked = replace(asked, fields={})
            del body  # from here on the call's input is what is held
            await _embed(request, services, made, asked)
        except PilotlightError as error:
            entry.metrics.call_failed(error.wire_code)
            raise
        finally:
            entry.budget.give_back(size, exchange.principal.tenant)


async def _embed(request: Request, services: OpenAIServices, made: ModelCall, asked: EmbeddingRequest) -> None:
    call = made.call
    if call.method.mode is not Mode.UNARY:
        raise BadInput(f"{asked.model} generates text, and makes no embeddings.", code="bad_request", field="model")

    async def work() -> bytes:
        result = await services.calls.run(call)
        note_end(services, call, result)
        return b"".join(await _written(services, call, result, asked))

    await send_answer(services, request, made, work)


async def _written(
    services: OpenAIServices, call: PreparedCall, result: CallResult, asked: EmbeddingRequest
) -> list[bytes]:
    tokens = (result.units or {}).get("prompt_tokens")
    work = EmbeddingsWork(
        size=len(result.output), model=asked.model, count=asked.count, as_base64=asked.as_base64, prompt_tokens=tokens
    )
    return await services.codec.embeddings(result.output, work, call.tenant)


def _texts(known: RawFields) -> tuple[msgspec.Raw, int]:
    """The inputs as a list of texts, and how many these are."""
    if (raw := known.get(INPUT)) is None:
        raise missing(INPUT, "a text, or a list of texts")
    head = bytes(memoryview(raw)[:64])
    if head[:1] == b'"':
        return msgspec.Raw(b"[" + bytes(memoryview(raw)) + b"]"), 1
    if head[:1] != b"[" or head[1:].lstrip()[:1] != b'"':
        raise BadInput(
            "input: expected a text, or a list of texts; ids of tokens are not supported.",
            code="bad_request", field=INPUT,
        )  # fmt: skip
    # Each takes a comma, so that a count of what are too many takes no time.
    count = _count(raw) if bytes(raw).count(b'",') < 16 * MOST_INPUTS else MOST_INPUTS + 1
    if count > MOST_INPUTS:
        raise BadInput(f"input: expected at most {MOST_INPUTS} texts.", code="bad_request", field=INPUT)
    return raw, count


def _count(raw: msgspec.Raw) -> int:
    try:
        return len(msgspec.json.decode(raw, type=list[msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        raise missing(INPUT, "a list of texts") from None


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
