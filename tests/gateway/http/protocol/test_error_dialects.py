"""One table of errors, written as each kind of client reads it."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import CODES, BadInput, PilotlightError, TooMuch, Unauthenticated
from pilotlight_core.model.limits import NO_LIMITS
from pilotlight_gateway.audit.audit_log import MemoryAuditLog
from pilotlight_gateway.http.protocol.api_operations import BoundOperation, Operation, principal_of
from pilotlight_gateway.http.protocol.error_dialects import SHAPES, Dialect
from pilotlight_gateway.http.protocol.http_exchange import Edge, OpenRequests
from pilotlight_gateway.http.protocol.openapi import document, error_schemas
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.tenancy.auth import Principal

CALLER = Principal(tenant="acme", key_id="k", scopes=frozenset({"read"}))


class Doorman:
    """Knows one caller, by a word."""

    def __init__(self, word: bytes) -> None:
        self._word = word

    async def authenticate(self, authorization: bytes) -> Principal:
        if authorization != self._word:
            raise Unauthenticated("Nobody knows you.")
        return CALLER


class NoCalls:
    """An application without calls."""

    def serves(self, scope: Scope) -> bool:
        return False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError


def operation(dialect: Dialect, error: PilotlightError | None = None, *, sessions: bool = False) -> Operation[None]:
    async def fail(request: Request, _: None) -> Response:
        if error is not None:
            raise error
        return Response(principal_of(request).tenant)

    return Operation(
        method="GET", path="/models", name="x", about="", endpoint=fail, scopes=("read",), dialect=dialect,
        errors=("rate_limited", "bad_input"), sessions=sessions,
    )  # fmt: skip


def client(made: Operation[None]) -> httpx.AsyncClient:
    rates = ApiRates(lambda _: NO_LIMITS, time.monotonic)
    bound = BoundOperation(made, None, Doorman(b"Bearer good"), rates, MemoryAuditLog(), Doorman(b"cookie"))
    edge = Edge(
        NoCalls(),
        bound,
        release=lambda _: None,
        requests=OpenRequests(),
        recorder=CallRecorder(GatewayMetrics(), time.monotonic),
        clock=time.monotonic,
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(edge), base_url="http://gateway")


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_error_has_its_form_in_every_dialect(code: str) -> None:
    """The status, the code and what to wait are of the one table."""
    error = PilotlightError("It went wrong.", code=code, field="input")
    native, openai_, v2 = (problem_of(error, "req_1", lambda: 0.0, dialect) for dialect in Dialect)

    assert native.status == openai_.status == v2.status == CODES[code].status
    assert native.headers[1:] == openai_.headers[1:] == v2.headers[1:]
    assert openai_.document == {"error": native.document["error"]}
    assert openai_.document["error"]["code"] == code
    assert v2.document == {"error": "It went wrong."}
    for problem, dialect in zip((native, openai_, v2), Dialect, strict=True):
        assert dict(problem.headers)[b"content-type"] == SHAPES[dialect].media_type.encode()


async def test_an_openai_client_reads_what_went_wrong() -> None:
    """Also where no endpoint was reached: its class of errors, the code, the field."""
    import openai

    cases: list[tuple[PilotlightError | None, str, type[openai.APIStatusError], str]] = [
        (TooMuch("Slow down.", retry_after=0.001), "good", openai.RateLimitError, "rate_limited"),
        (BadInput("model: there is none.", field="model"), "good", openai.UnprocessableEntityError, "bad_input"),
        (None, "bad", openai.AuthenticationError, "unauthenticated"),
    ]
    for error, key, raised, code in cases:
        http: Any = client(operation(Dialect.OPENAI, error))
        caller = openai.AsyncOpenAI(base_url="http://gateway", api_key=key, http_client=http, max_retries=0)
        with pytest.raises(raised) as found:
            await caller.models.list()
        assert found.value.code == code
        assert found.value.param == (error.more.get("field") if error else None)


async def test_the_other_dialect_has_the_text_alone() -> None:
    """As clients of the Open Inference Protocol expect it."""
    async with client(operation(Dialect.V2, BadInput("There is no such model."))) as http:
        answer = await http.get("/models", headers={"authorization": "Bearer good"})
    assert (answer.status_code, answer.json()) == (422, {"error": "There is no such model."})
    assert answer.headers["content-type"] == "application/json"


def test_the_document_says_which_form_an_operation_has() -> None:
    """And has the schemas of those that are used."""
    for dialect, other in ((Dialect.OPENAI, "InferenceError"), (Dialect.V2, "OpenAIError")):
        said: Any = document([operation(dialect)])
        (content,) = said["paths"]["/models"]["get"]["responses"]["429"]["content"].items()
        name = SHAPES[dialect].schema_name
        assert content == (SHAPES[dialect].media_type, {"schema": {"$ref": f"#/components/schemas/{name}"}})
        assert said["components"]["schemas"][name] == error_schemas()[name]
        assert other not in said["components"]["schemas"]


async def test_a_session_stands_for_a_key_where_the_operation_says_so() -> None:
    """A key goes first; elsewhere, and without the cookie, the caller is nobody."""
    cookie = {"cookie": "__Host-pilotlight=cookie"}
    async with client(operation(Dialect.NATIVE, sessions=True)) as http:
        assert (await http.get("/models", headers=cookie)).text == "acme"
        assert (await http.get("/models", headers=cookie | {"authorization": "Bearer bad"})).status_code == 401
        assert (await http.get("/models")).status_code == 401
    async with client(operation(Dialect.NATIVE)) as http:
        assert (await http.get("/models", headers=cookie)).status_code == 401
        assert (await http.get("/models", headers={"authorization": "Session cookie"})).status_code == 401
