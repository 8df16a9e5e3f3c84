"""An operation asks who calls, gives its endpoint what it needs, and reads what it is sent."""

from __future__ import annotations

import time
from typing import Any

import httpx
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import BadInput, PilotlightError, Unauthenticated
from pilotlight_core.model.limits import NO_LIMITS
from pilotlight_gateway.audit.audit_log import MemoryAuditLog
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import (
    SMALL_BODY,
    BoundOperation,
    Operation,
    json_answer,
    list_of,
    principal_of,
    read_struct,
    truth_of,
)
from pilotlight_gateway.http.protocol.http_exchange import KEY, Exchange
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.tenancy.auth import Principal

READER = Principal(tenant="acme", key_id="k", scopes=frozenset({"read"}))


class Doorman:
    """Knows one caller."""

    async def authenticate(self, authorization: bytes) -> Principal:
        if authorization != b"Bearer good":
            raise Unauthenticated("no")
        return READER


class Order(msgspec.Struct):
    """What a test sends."""

    count: int
    ratio: float = 1.0


def within(bound: BoundOperation[Any]) -> Any:
    """An application that raises what the operation raises."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = Exchange(scope, send, 0.0)
        await bound(scope, receive, scope[KEY])

    return app


def operation(endpoint: Any, *scopes: str) -> Operation[str]:
    return Operation(method="POST", path="/x", name="x", about="", endpoint=endpoint, scopes=scopes)


async def post(made: Operation[str], content: bytes = b"", **headers: str) -> httpx.Response:
    rates = ApiRates(lambda _: NO_LIMITS, time.monotonic)
    transport = httpx.ASGITransport(within(BoundOperation(made, "needs", Doorman(), rates, MemoryAuditLog())))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        return await client.post("/x?follow=true&odd=maybe", content=content, headers=headers)


async def test_an_endpoint_gets_what_its_group_needs() -> None:
    """And whoever calls; it may answer by itself."""

    async def show(request: Request, services: str) -> Response:
        return json_answer({"services": services, "tenant": principal_of(request).tenant}, status=201)

    async def silent(request: Request, _: str) -> None:
        await Response("by itself")(request.scope, request.receive, request._send)

    answer = await post(operation(show, "read"), authorization="Bearer good")
    assert (answer.status_code, answer.json()) == (201, {"services": "needs", "tenant": "acme"})
    assert (await post(operation(silent))).text == "by itself"


@pytest.mark.parametrize(
    ("scopes", "authorization", "code"),
    [(("read",), "Bearer bad", "unauthenticated"), (("deploy",), "Bearer good", "forbidden")],
)
async def test_who_may_not_is_refused_before_the_endpoint(
    scopes: tuple[str, ...], authorization: str, code: str
) -> None:
    """Unknown, or without the scope."""

    async def never(_: Request, __: str) -> Response:
        raise AssertionError

    with pytest.raises(PilotlightError) as refused:
        await post(operation(never, *scopes), authorization=authorization)
    assert refused.value.wire_code == code


async def read(
    content: bytes, default: Order | None = None, kind: str = "application/json", most: int = 1_000
) -> tuple[Order, int]:
    """What a body is read as, and the bytes that are still held for it."""
    budget, found = ByteBudget(limit=10**6), []

    async def take(request: Request, _: str) -> Response:
        found.append(await read_struct(request, budget, Order, BodyLimits(size=most), default))
        return Response()

    await post(operation(take), content, **{"content-type": kind})
    return found[0], budget.used


async def test_a_body_is_read_as_its_struct() -> None:
    """Whole numbers may be written with a point, and an empty body may stand for defaults; nothing stays held."""
    assert await read(b'{"count": 3}') == (Order(3), 0)
    assert await read(b'{"count": 3.0, "ratio": 2}') == (Order(3, 2.0), 0)
    assert await read(b"", Order(9)) == (Order(9), 0)


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"{", "application/json", "bad_request"),
        (b"\xff", "application/json", "bad_request"),
        (b'{"count": 3.5}', "application/json", "bad_input"),
        (b'{"count": "3"}', "application/json", "bad_input"),
        (b"", "application/json", "bad_request"),
        (b'{"count": 3}', "text/plain", "unsupported_media_type"),
        (b"[" * 900, "application/json", "bad_input"),
        (b" " * 1_001, "application/json", "too_large"),
    ],
)
async def test_what_is_no_such_struct_says_why(content: bytes, kind: str, code: str) -> None:
    """Before the endpoint does anything."""
    with pytest.raises(BadInput) as refused:
        await read(content, kind=kind)
    assert refused.value.wire_code == code


async def test_a_large_body_is_not_read_twice() -> None:
    """Reading 3.0 as 3 takes a walk through all of it, on the event loop."""
    with pytest.raises(BadInput, match="count: expected a whole number"):
        await read(b'{"count": 3.0}' + b" " * SMALL_BODY.size, most=10**6)


async def test_a_query_is_true_or_false() -> None:
    """Absent it is false; what is neither names its field."""
    found = []

    async def take(request: Request, _: str) -> Response:
        found.extend([truth_of(request, "follow"), truth_of(request, "absent")])
        with pytest.raises(BadInput, match="odd: expected true or false"):
            truth_of(request, "odd")
        return Response()

    await post(operation(take))
    assert found == [True, False]


def test_one_name_is_one_type() -> None:
    """Or the document would have two schemas of that name."""
    assert list_of("Orders", Order) is list_of("Orders", Order)
    assert msgspec.json.encode(list_of("Orders", Order)(orders=[])) == b'{"orders":[]}'
