"""Operations of the API: path, scopes, request and response. Routes and the OpenAPI document are made of them."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import BadInput, PilotlightError
from pilotlight_gateway.audit.audit_log import AuditLog
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat, format_of_body
from pilotlight_gateway.bodies.json_structs import read_json
from pilotlight_gateway.http.protocol.audited_changes import make_audited
from pilotlight_gateway.http.protocol.browser_sessions import session_of
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.http_exchange import Exchange, authorization, exchange_of, header
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, read_body
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.tenancy.auth import Authenticator, Principal

T = TypeVar("T")
G = TypeVar("G")
"""What a group of endpoints needs."""
SMALL_BODY = BodyLimits(size=64 * 1024)
JSON = "application/json"
COUNT = re.compile(r"[1-9][0-9]{0,15}")
MINUTES = re.compile(r"([1-9][0-9]{0,3})([mh])")
MINUTES_SCHEMA = {"type": "string", "pattern": "^[1-9][0-9]{0,3}[mh]$"}
MOST_PER_S = 1e9
TRUTHS = {"false": False, "0": False, "true": True, "1": True}
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
    request_schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By media type, the JSON Schema of a body that the endpoint reads itself."""
    answer: Any = None
    """A type, or a JSON Schema; None: no content."""
    answer_media: tuple[str, ...] = (JSON,)
    accepted: type[msgspec.Struct] | None = None
    """The content of a 202, for operations that can be carried out later."""
    status: int = 200
    errors: tuple[str, ...] = ()
    rated: bool = True
    """Whether requests count under `api_requests_per_s`."""
    is_call: bool = False
    """Whether it is a call, which limits of calls bound, and not `open_requests`."""
    slashes: bool = False
    """Whether what is last in its path may have slashes."""
    parameters: tuple[Parameter, ...] = ()
    sessions: bool = False
    """Whether a browser's session may stand for a key, where there are sessions."""
    dialect: Dialect = Dialect.NATIVE
    """In which its errors are written, those of authentication and limits too."""
    changes: bool | None = None
    """Whether it is written into the audit log; None: unless it reads, or is about calls."""
    tells: tuple[str, ...] = ()
    """The fields of its body that the audit log repeats."""

    @property
    def route(self) -> str:
        """The path as the router matches it."""
        return f"{self.path[:-1]}:path}}" if self.slashes else self.path

    @property
    def is_audited(self) -> bool:
        by_kind = self.method != "GET" and bool(self.scopes) and "invoke" not in self.scopes
        return by_kind if self.changes is None else self.changes


class BoundOperation(Generic[G]):
    """An operation with its services, as an ASGI application."""

    def __init__(
        self,
        operation: Operation[G],
        services: G,
        authenticator: Authenticator,
        rates: ApiRates,
        audit: AuditLog,
        sessions: Authenticator | None = None,
    ) -> None:
        """`sessions` knows those of browsers; without it there are keys only."""
        self._audit = audit
        self.operation = operation
        self._services = services
        self._authenticator = authenticator
        self._rates = rates
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the exchange sends
        operation, exchange = self.operation, exchange_of(scope)
        exchange.route, exchange.dialect = operation.path, operation.dialect
        if not operation.scopes:
            await self._answer(scope, receive, exchange)
            return
        exchange.note_principal(await self._caller(scope))
        with ExitStack() as held:
            try:
                self._admit(exchange.principal, held)
            except PilotlightError as error:
                if exchange.principal.break_glass:  # what it is refused is written down too
                    await make_audited(self._audit, operation, scope, exchange, partial(_refuse, error))
                raise
            await self._answer(scope, receive, exchange)

    def _admit(self, principal: Principal, held: ExitStack) -> None:
        principal.require(*self.operation.scopes)
        if self.operation.rated:
            self._rates.take_request(principal.tenant)
        if not self.operation.is_call:
            held.enter_context(self._rates.holding(principal.tenant))

    async def _caller(self, scope: Scope) -> Principal:
        key = authorization(scope)
        if not key and self.operation.sessions and self._sessions is not None and (session := session_of(scope)):
            return await self._sessions.authenticate(session)
        return await self._authenticator.authenticate(key)

    async def _answer(self, scope: Scope, receive: Receive, exchange: Exchange) -> None:
        operation = self.operation
        assert operation.endpoint is not None  # noqa: S101 - the edge serves that one
        request, endpoint = Request(scope, receive, exchange), operation.endpoint
        if not (operation.is_audited or exchange.principal.break_glass):
            response = await endpoint(request, self._services)
        else:
            change = partial(endpoint, request, self._services)
            response = await make_audited(self._audit, operation, scope, exchange, change)
        if response is not None:
            await response(scope, receive, exchange)


async def _refuse(error: PilotlightError) -> Response | None:
    raise error


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


def count_of(request: Request, name: str, default: int, most: int) -> int:
    """A query parameter that counts, from 1 to `most`.

    Raises:
        BadInput: it is no such number.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not COUNT.fullmatch(text) or int(text) > most:
        raise BadInput(f"{name}: expected a number from 1 to {most}.", field=name)
    return int(text)


def minutes_of(request: Request, name: str, most: int) -> int:
    """The minutes that a query parameter asks for, as 10m or 2h; 0: it is absent.

    Raises:
        BadInput: it says something else, or more than `most`.
    """
    text = request.query_params.get(name)
    if text is None:
        return 0
    found = MINUTES.fullmatch(text)
    minutes = int(found[1]) * (60 if found[2] == "h" else 1) if found is not None else 0
    if not 1 <= minutes <= most:
        longest = f"{most // 60}h" if most % 60 == 0 else f"{most}m"
        raise BadInput(f"{name}: expected minutes or hours, such as 10m or 2h, at most {longest}.", field=name)
    return minutes


def rate_of(request: Request, name: str) -> float | None:
    """A query parameter that is a number of calls per second; None: it is absent.

    Raises:
        BadInput: it is not a number above 0.
    """
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate <= MOST_PER_S:
        raise BadInput(f"{name} {text[:40]!r}: expected calls per second, a number above 0.", field=name)
    return rate


def json_answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(msgspec.json.encode(value), status_code=status, media_type=JSON)


@asynccontextmanager
async def json_body(request: Request, budget: ByteBudget, limits: BodyLimits = SMALL_BODY) -> AsyncIterator[bytes]:
    """The request's body, which should be JSON; the budget counts it until the block ends.

    Raises:
        BadInput: `too_large`, or `unsupported_media_type`.
    """
    if format_of_body(header(request.scope, b"content-type")) is not BodyFormat.JSON:
        raise BadInput("This takes application/json only.", code="unsupported_media_type")
    tenant = principal_of(request).tenant
    body = await read_body(request.scope, request.receive, limits, budget, tenant)
    try:
        yield body
    finally:
        budget.give_back(len(body), tenant)


async def read_struct(
    request: Request, budget: ByteBudget, kind: type[T], limits: BodyLimits = SMALL_BODY, default: T | None = None
) -> T:
    """The request's JSON body as a struct; `default` stands for an empty one.

    Raises:
        BadInput: `bad_request`, `too_large`, `unsupported_media_type`, or naming the field.
    """
    async with json_body(request, budget, limits) as body:
        if default is not None and not body:
            found = default
        else:
            found = read_json(body, kind, patient=len(body) <= SMALL_BODY.size)
    if isinstance(found, msgspec.Struct):
        exchange_of(request.scope).asked = found
    return found
