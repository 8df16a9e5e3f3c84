"""Events of the platform, as a list or as they come."""

from __future__ import annotations

import re
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.seeing.event_api import EventList
from pilotlight_core.model.errors import BadInput, Forbidden
from pilotlight_core.model.ids import FUNCTION_PATTERN, NAME_PATTERN, check_name
from pilotlight_core.model.messages.logs import KIND_LENGTH
from pilotlight_gateway.deploys.function_logs import SINCE_SCHEMA, read_since
from pilotlight_gateway.events.event_reader import EVERYBODY, EventQuery, PlatformEventSource, read_events
from pilotlight_gateway.http.protocol.api_operations import (
    Operation,
    Parameter,
    count_of,
    json_answer,
    principal_of,
    truth_of,
)
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, event, relay
from pilotlight_gateway.http.protocol.http_exchange import exchange_of
from pilotlight_gateway.limits.tenant_slots import TenantSlots

SHOWN_BY_DEFAULT, SHOWN_AT_MOST = 100, 10_000
SINCE = "7d"


@dataclass(frozen=True, kw_only=True)
class PlatformEventServices:
    """The ports of this endpoint."""

    events: PlatformEventSource
    followers: TenantSlots


async def show_events(request: Request, services: PlatformEventServices) -> Response | None:
    """`GET /v1/events`: a list, or server-sent events without end if the client accepts them."""
    follow = "text/event-stream" in request.headers.get("accept", "")
    found = read_events(services.events, _event_query(request, follow=follow))
    with services.followers.slot(principal_of(request).tenant):
        async with aclosing(found):
            if not follow:
                most, listed = count_of(request, "limit", SHOWN_AT_MOST, SHOWN_AT_MOST), []
                async for each in found:
                    listed.append(each)
                    if len(listed) >= most:  # behind `after` there may be as many as the stream has
                        break
                return json_answer(EventList(events=listed))
            stream = EventStream(exchange_of(request.scope), HEADERS)

            async def send_all() -> None:
                async for each in found:
                    await stream.send(event(each.kind.encode(), msgspec.json.encode(each), b"%d" % each.id))

            await relay(stream, request.receive, send_all)
    await stream.finish()
    return None


def _event_query(request: Request, *, follow: bool) -> EventQuery:
    asked, caller = request.query_params, principal_of(request)
    of_all = truth_of(request, "all")
    tenant = check_name(asked["tenant"], "tenant") if "tenant" in asked else caller.tenant
    if not caller.operator and (of_all or tenant != caller.tenant):
        raise Forbidden("Events of other tenants and of the platform are shown to operators.", scope="operator")
    after = asked.get("after", request.headers.get("last-event-id", ""))
    if (after or "after" in asked) and not (after.isascii() and after.isdigit() and len(after) <= 15):
        raise BadInput(f"after: expected the id of an event, a number, not {after[:40]!r}.", field="after")
    function = asked.get("function")
    if function is not None and re.fullmatch(FUNCTION_PATTERN, function) is None:
        raise BadInput(f"function: expected app.function, not {function[:100]!r}.", field="function")
    known: dict[str, Any] = {} if after else {"tail": count_of(request, "limit", SHOWN_BY_DEFAULT, SHOWN_AT_MOST)}
    return EventQuery(
        tenant=EVERYBODY if of_all else tenant,
        is_operator=caller.operator,
        after=int(after) if after else 0,
        since=0.0 if after else min(read_since(asked.get("since", SINCE)), time.time()),
        kind=asked.get("kind", "")[:KIND_LENGTH],
        function=function or "",
        follow=follow,
        **known,
    )


EVENTS = (
    Operation(
        method="GET", path="/v1/events", name="listEvents", endpoint=show_events, scopes=("read", "operator"),
        about="What happened to the caller's functions: decisions, breakers, slowdowns, budgets; for operators also of "
        "others and of the platform. With `Accept: text/event-stream` they are sent as they come, without end.",
        answer=EventList, answer_media=("application/json", "text/event-stream"),
        errors=("bad_input", "forbidden", "overloaded"),
        parameters=(
            Parameter(name="since", about="How long ago: 30m, 12h, 7d (the default); or unix seconds.",
                      schema=SINCE_SCHEMA),
            Parameter(name="after", about="Only those behind this one; so does the header Last-Event-ID.",
                      schema={"type": "string", "pattern": "^[0-9]{1,15}$"}),
            Parameter(name="limit", about="At most so many: the last ones, or with `after` the next ones.",
                      schema={"type": "integer", "minimum": 1, "maximum": SHOWN_AT_MOST}),
            Parameter(name="kind", about="Only kinds that begin so, such as breaker or function.scaled."),
            Parameter(name="function", about="Only of this one: app.function.",
                      schema={"type": "string", "pattern": FUNCTION_PATTERN}),
            Parameter(name="tenant", about="Of another tenant, for operators.",
                      schema={"type": "string", "pattern": NAME_PATTERN}),
            Parameter(name="all", about="Of all tenants and of the platform, for operators.",
                      schema={"type": "boolean"}),
        ),
    ),
)  # fmt: skip
