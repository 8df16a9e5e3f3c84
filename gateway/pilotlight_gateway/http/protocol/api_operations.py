"""Operations of the API: path, scopes, request and response. Routes and the OpenAPI document are made of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_requests import BodyFormat, format_of_body, wrong_shape
from pilotlight_gateway.http.protocol.http_exchange import exchange_of, header
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, read_body
from pilotlight_gateway.tenancy.auth import Authenticator, Principal

T = TypeVar("T")
G = TypeVar("G")
"""What a group of endpoints needs."""
SMALL_BODY = BodyLimits(size=64 * 1024)
JSON = "application/json"
TRUTHS = {"false": False, "0": False, "true": True, "1": True}
EXACT = 2**53
"""Up to here floats are exact."""
BODY = ("bad_request", "bad_input", "too_large", "unsupported_media_type", "deadline_exceeded", "slow_body")
"""Errors of operations with a body."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A query parameter or request header."""

    name: str
    about: str
    where: str = "query"
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation(Generic[G]):
    """One method of one path, whose endpoint needs a `G`."""

    method: str
    path: str
    name: str
    """The operationId."""
    about: str
    endpoint: Callable[[Request, G], Awaitable[Response | None]] | None
    """None: the call endpoint serves it. An endpoint that returns None has sent its answer."""
    scopes: tuple[str, ...] = ()
    """A key needs one of them; empty: no key is needed."""
    request: type[msgspec.Struct] | None = None
    body_required: bool = True
    """False: an empty body stands for the request's defaults."""
    request_media: tuple[str, ...] = (JSON,)
    answer: Any = None
    """A type, or a JSON Schema; None: no content."""
    answer_media: tuple[str, ...] = (JSON,)
    accepted: type[msgspec.Struct] | None = None
    """The content of a 202, for operations that can be carried out later."""
    status: int = 200
    errors: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()


class BoundOperation(Generic[G]):
    """An operation with its services, as an ASGI application."""

    def __init__(self, operation: Operation[G], services: G, authenticator: Authenticator) -> None:
        self.operation = operation
        self._services = services
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the exchange sends
        operation, exchange = self.operation, exchange_of(scope)
        exchange.route = operation.path
        if operation.scopes:
            exchange.principal = await self._authenticator.authenticate(header(scope, b"authorization"))
            exchange.principal.require(*operation.scopes)
        assert operation.endpoint is not None  # noqa: S101 - the edge serves that one
        response = await operation.endpoint(Request(scope, receive, exchange), self._services)
        if response is not None:
            await response(scope, receive, exchange)


@cache
def list_of(name: str, kind: Any) -> Any:
    """The type of an object with one list. Each name must stand for one type."""
    return msgspec.defstruct(name, [(name.lower(), list[kind])])


def principal_of(request: Request) -> Principal:
    """The caller."""
    return exchange_of(request.scope).principal


def truth_of(request: Request, name: str) -> bool:
    """A boolean query parameter, by default false.

    Raises:
        BadInput: it is neither true nor false.
    """
    truth = TRUTHS.get(request.query_params.get(name, "false").lower())
    if truth is None:
        raise BadInput(f"{name}: expected true or false.", field=name)
    return truth


def json_answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(msgspec.json.encode(value), status_code=status, media_type=JSON)


async def read_struct(
    request: Request, budget: ByteBudget, kind: type[T], limits: BodyLimits = SMALL_BODY, default: T | None = None
) -> T:
    """The request's JSON body as a struct; `default` stands for an empty one.

    Raises:
        BadInput: `bad_request`, `too_large`, `unsupported_media_type`, or naming the field.
    """
    if format_of_body(header(request.scope, b"content-type")) is not BodyFormat.JSON:
        raise BadInput("This takes application/json only.", code="unsupported_media_type")
    tenant = principal_of(request).tenant
    body = await read_body(request.scope, request.receive, limits, budget, tenant)
    try:
        if not body and default is not None:
            return default
        return _decoded(body, kind)
    except msgspec.ValidationError as error:
        raise wrong_shape(error, kind if issubclass(kind, msgspec.Struct) else None) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"The body is not JSON: {error}.", code="bad_request") from None
    except RecursionError:
        raise BadInput("The body is nested too deep.", field="body") from None
    finally:
        budget.give_back(len(body), tenant)


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        if "got `float`" not in str(error):
            raise
        return msgspec.convert(_whole_numbers(msgspec.json.decode(body)), kind)


def _whole_numbers(value: Any) -> Any:
    """`value` with 3.0 as 3: JSON does not distinguish them, msgspec does."""
    if isinstance(value, dict):
        return {key: _whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(inner) for inner in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    return value
