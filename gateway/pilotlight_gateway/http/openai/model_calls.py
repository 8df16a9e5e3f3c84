"""From a request that names a model to a call that is ready to run: found, admitted, checked."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
from starlette.requests import Request

from pilotlight_core.model.errors import BadInput, PilotlightError, UnknownFunction
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.spec import MethodSpec, VersionRecord
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.call_requests import BodyFormat, format_of_body
from pilotlight_gateway.bodies.model_readers import ModelRoute
from pilotlight_gateway.bodies.model_request import ModelRequest, RawFields
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.deploys.served_models import ServedModel, ServedModels
from pilotlight_gateway.http.calls.call_endpoint import CallEntry
from pilotlight_gateway.http.calls.call_head import CallHead, split_headers
from pilotlight_gateway.http.calls.call_limits import CALL_BODY, function_of
from pilotlight_gateway.http.calls.keyed_call_answers import KeyedCallAnswers
from pilotlight_gateway.http.calls.stream_money import STEP_S
from pilotlight_gateway.http.openai.function_inputs import FittedInput, call_body, fitted, method_called
from pilotlight_gateway.http.protocol.http_exchange import Exchange, exchange_of, header
from pilotlight_gateway.http.protocol.request_bodies import read_body, too_large
from pilotlight_gateway.http.protocol.trace_headers import trace_headers
from pilotlight_gateway.idempotency.key_decision import HEADER
from pilotlight_gateway.idempotency.key_header import KEY
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import scheduling_class_of

TIMEOUT = b"x-stainless-read-timeout"
"""Where stock clients say how many seconds they wait for an answer."""
TIMEOUT_SECONDS = re.compile(rb"[0-9]{1,6}([.][0-9]{1,6})?")
INPUT = "input"
"""The field of what a function refuses."""
WITHIN = "input."
"""Begins the names of fields that the function's schema refuses."""
FIELD = re.compile(r"([a-z_]+(?:[.]\w+)*): ")
"""Begins what an engine says of a field that it refuses."""
RENAMED = {"prompt_ids": "prompt"}
"""What a document has by another name than the request that it was made of."""
PRIORITY = b"pilotlight-priority"
Fit = Callable[[MethodSpec, RawFields, str], FittedInput]
"""Which of its fields a method takes, of the model of that name."""


@dataclass(frozen=True, kw_only=True)
class OpenAIServices:
    """The parts of the gateway that these routes need."""

    entry: CallEntry
    calls: CallPort
    models: ServedModels
    schemas: VersionSchemas
    registry: RegistryPort
    keyed: KeyedCallAnswers
    codec: BodyCodec
    clock: Callable[[], float]
    """Monotonic seconds."""
    wall: Callable[[], float]
    """Unix seconds."""


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A call that is ready to run, and what of its request nothing goes by."""

    call: PreparedCall
    ignored: tuple[str, ...]


@asynccontextmanager
async def received_call(
    request: Request, services: OpenAIServices, route: ModelRoute, method_name: str, fit: Fit = fitted
) -> AsyncIterator[tuple[ModelRequest, ModelCall]]:
    """What a request asks for, without its values, and the call that it comes to, counted until the block ends.

    Raises:
        BadInput: `unsupported_media_type`, or as `prepare_call`. DeadlineExceeded, Unavailable: as `read_body`.
    """
    exchange, entry = exchange_of(request.scope), services.entry
    tenant = exchange.principal.tenant
    with entry.gate.around(exchange.task):
        body = await _read_body(request, entry)
        size = len(body)
        try:
            asked = await services.codec.read_model(body, route, tenant)
            del body
            call = await prepare_call(services, request, asked, method_name=method_name, size=size, fit=fit)
            asked = msgspec.structs.replace(asked, fields={})  # from here on the call's input is what is held
            yield asked, call
        except PilotlightError as error:
            entry.recorder.request_failed(error, exchange)
            raise
        finally:
            entry.budget.give_back(size, tenant)


async def _read_body(request: Request, entry: CallEntry) -> bytes:
    if format_of_body(header(request.scope, b"content-type")) is not BodyFormat.JSON:
        raise BadInput("This takes application/json only.", code="unsupported_media_type")
    tenant = exchange_of(request.scope).principal.tenant
    return await read_body(request.scope, request.receive, CALL_BODY, entry.budget, tenant)


async def find_version(services: OpenAIServices, tenant: str, name: str) -> tuple[ServedModel, VersionRecord]:
    """The model, and what is deployed of its function, with its schemas.

    Raises:
        UnknownFunction: `model_not_found`. TooMuch: the tenant has named too many that there are not.
    """
    versions = services.entry.versions
    model = await services.models.find(tenant, name, versions.guesses)
    try:
        return model, await versions.find(tenant, model.ref)
    except UnknownFunction as error:
        raise UnknownFunction(error.detail, code="model_not_found", field="model") from None


async def prepare_call(
    services: OpenAIServices,
    request: Request,
    asked: ModelRequest,
    *,
    method_name: str,
    size: int,
    fit: Fit = fitted,
) -> ModelCall:
    """The call that a request comes to. `size`: bytes of its body.

    Raises:
        PilotlightError: as a native call, wrong fields as `bad_request`.
    """
    entry, exchange, model, stream = services.entry, exchange_of(request.scope), asked.model, asked.stream
    found, version = await find_version(services, exchange.principal.tenant, model)
    if stream and _has_key(request):
        raise BadInput(
            f"{HEADER}: a stream is not kept, so it cannot be repeated: leave one of the two out.",
            code="bad_request", field=HEADER,
        )  # fmt: skip
    limits = await entry.limits.admit(exchange, version, CALL_BODY, LimitAskKind.CALL)
    if size > limits.size:
        raise too_large(limits)
    exchange.begin_call(services.calls.new_id())
    exchange.home = services.calls.address_of_home(function_of(version))
    whole = await services.schemas.whole(version)
    method = method_called(whole.spec, method_name)
    arguments, left_out = fit(method, with_adapter(asked.fields, found), model)
    sent = request.scope["headers"]
    headers = split_headers(sent) | trace_headers(sent) | {name: value for name, value in sent if name == PRIORITY}
    if stream:
        headers[b"accept"] = b"text/event-stream"
    deadline_ms = None if stream else _patience_ms(services, request, version)
    body = call_body(method, arguments, deadline_ms)
    try:
        head = CallHead(headers, found.ref, b"")
        head.user = asked.user
        _, call = await entry.reader.prepare(exchange, head, version, body)
        await _take(services, exchange, call, stream=stream, keyed=_has_key(request))
    except BadInput as error:
        raise of_request(error) from None
    return ModelCall(call=call, ignored=(*asked.ignored, *left_out))


def with_adapter(fields: RawFields, model: ServedModel) -> RawFields:
    """The fields of a request for a model, which may be an adapter on another one."""
    return {**fields, "adapter": msgspec.Raw(msgspec.json.encode(model.adapter))} if model.adapter else fields


async def _take(services: OpenAIServices, exchange: Exchange, call: PreparedCall, *, stream: bool, keyed: bool) -> None:
    """Count what can be counted once a call was read: its tokens and its money."""
    limits, admission = services.entry.limits, exchange.admission
    await limits.count_tokens(exchange, call)
    if admission is not None and admission.policy.budgets and not keyed:
        await limits.reserve(admission, call, STEP_S if stream else None)


def _has_key(request: Request) -> bool:
    return any(name == KEY for name, _ in request.scope["headers"])


def _patience_ms(services: OpenAIServices, request: Request, version: VersionRecord) -> float | None:
    """How long the client waits for an answer, if that is less than the function may take."""
    said = next((value for name, value in request.scope["headers"] if name == TIMEOUT), b"")
    if not TIMEOUT_SECONDS.fullmatch(said) or not (seconds := float(said)):
        return None
    tenant = exchange_of(request.scope).principal.tenant
    scheduling = scheduling_class_of(services.registry, tenant, function_of(version))
    return seconds * 1000 if seconds < min(version.spec.longest_call_s, scheduling.longest_s) else None


def of_request(error: PilotlightError) -> PilotlightError:
    """A refusal by a function, or by its schema, as one of the request that its fields came from."""
    if not isinstance(error, BadInput):
        return error
    code = "bad_request" if error.wire_code == "bad_input" else error.wire_code
    field = str(error.more.get("field") or "")
    if field == INPUT and (named := FIELD.match(error.detail)) is not None:
        head, dot, rest = named[1].partition(".")
        field = RENAMED.get(head, head) + dot + rest
    else:
        field = field.removeprefix(WITHIN)
    return BadInput(error.detail.removeprefix(WITHIN), code=code, **{**error.more, "field": field or None})


def failure_of(error: PilotlightError, call: PreparedCall) -> PilotlightError:
    """The error of a call that has failed, as its caller reads it here."""
    return of_request(redact_for_caller(error, call))
