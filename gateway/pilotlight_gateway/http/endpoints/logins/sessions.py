"""Sessions: opened with an API key, or by the code of a link, and ended by whoever has one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.seeing.session_api import CodeExchange, NewSession, SessionInfo, SessionRequest
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat, format_of_body
from pilotlight_gateway.bodies.json_structs import read_json
from pilotlight_gateway.http.endpoints.logins.session_rates import SessionRates
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    SMALL_BODY,
    Operation,
    json_answer,
    principal_of,
    read_struct,
)
from pilotlight_gateway.http.protocol.http_exchange import header
from pilotlight_gateway.http.protocol.request_bodies import read_body
from pilotlight_gateway.limits.connections import source_of
from pilotlight_gateway.tenancy.api_keys import SCOPES
from pilotlight_gateway.tenancy.auth import LOOKUPS_AT_A_TIME
from pilotlight_gateway.tenancy.login_sessions import end_session, exchange_code, open_session, session_info
from pilotlight_gateway.tenancy.registry_port import RegistryPort

NOBODY = ""
"""Whose bodies those are with which a code is exchanged: they come without a key."""


@dataclass(frozen=True, kw_only=True)
class SessionServices:
    """The ports of these endpoints. `wall` is the clock, in unix seconds."""

    registry: RegistryPort
    budget: ByteBudget
    dashboard_url: str = ""
    """Where browsers reach the dashboard; "": nobody has said."""
    wall: Callable[[], float] = time.time
    guesses: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOOKUPS_AT_A_TIME))
    """Codes that are looked up at a time: nobody has shown who they are."""
    rates: SessionRates = field(default_factory=lambda: SessionRates(time.monotonic))


async def create(request: Request, services: SessionServices) -> Response:
    """`POST /v1/sessions`."""
    asked = await read_struct(request, services.budget, SessionRequest, default=SessionRequest())
    services.rates.take_opening(principal_of(request).key_id, _source(request))
    made = await open_session(services.registry, principal_of(request), services.wall(), link=asked.link)
    if made.code and services.dashboard_url:
        link = f"{services.dashboard_url.rstrip('/')}/ui/login?code={made.code}"
        made = msgspec.structs.replace(made, url=link)
    return json_answer(made, status=201)


async def exchange(request: Request, services: SessionServices) -> Response:
    """`POST /v1/sessions/exchange`: by a code, without a key."""
    if format_of_body(header(request.scope, b"content-type")) is not BodyFormat.JSON:
        raise BadInput("This takes application/json only.", code="unsupported_media_type")
    services.rates.take_exchange(_source(request))
    body = await read_body(request.scope, request.receive, SMALL_BODY, services.budget, NOBODY)
    try:
        asked = read_json(body, CodeExchange, patient=False)
    finally:
        services.budget.give_back(len(body), NOBODY)
    async with services.guesses:
        made = await exchange_code(services.registry, asked.code, services.wall())
    return json_answer(made, status=201)


async def show(request: Request, services: SessionServices) -> Response:
    """`GET /v1/sessions/current`."""
    return json_answer(session_info(services.registry, principal_of(request)))


async def end(request: Request, services: SessionServices) -> Response:
    """`DELETE /v1/sessions/current`."""
    await end_session(services.registry, principal_of(request))
    return Response(status_code=204)


def _source(request: Request) -> str:
    return source_of(request.client.host) if request.client is not None else ""


SESSIONS = (
    Operation(
        method="POST", path="/v1/sessions", name="openSession", status=201, endpoint=create, scopes=SCOPES,
        about="Open a session, which stands for the API key for eight hours, or make the code of a link that opens "
        "one; it is shown only here.",
        changes=True, tells=("link",), request=SessionRequest, body_required=False, answer=NewSession, errors=BODY,
    ),
    Operation(
        method="POST", path="/v1/sessions/exchange", name="exchangeCode", status=201, endpoint=exchange,
        about="Open the session of a link, once. No API key is needed.",
        request=CodeExchange, answer=NewSession, errors=(*BODY, "unauthenticated", "starting", "rate_limited"),
    ),
    Operation(
        method="GET", path="/v1/sessions/current", name="getSession", endpoint=show, scopes=SCOPES,
        about="Whose session it is, or whose key.", answer=SessionInfo,
    ),
    Operation(
        method="DELETE", path="/v1/sessions/current", name="endSession", status=204, endpoint=end, scopes=SCOPES,
        about="End the session with which this is asked.", changes=True,
    ),
)  # fmt: skip
