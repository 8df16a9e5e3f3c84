"""The events of a call that goes on without its first connection."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.errors import BadInput, UnknownCall
from pilotlight_core.model.ids import CALL_ID, CLIENT_CALL_ID
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.http.protocol.api_operations import principal_of
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, send_source
from pilotlight_gateway.http.protocol.http_exchange import ClientGone, exchange_of
from pilotlight_gateway.streams.stream_exchange import StreamExchange

EVENT_ID = re.compile("[0-9]{1,15}")


@dataclass(frozen=True, kw_only=True)
class EventServices:
    """The ports of this endpoint."""

    calls: CallPort
    streams: StreamExchange


async def follow_call(request: Request, services: EventServices) -> Response | None:
    """`GET /v1/calls/{id}/events`: those behind `Last-Event-ID`, as they come; 204 if there are none and none come."""
    tenant, call_id = principal_of(request).tenant, str(request.path_params["id"])
    after = _last_event(request.headers.get("last-event-id", ""))
    if CLIENT_CALL_ID.fullmatch(call_id):
        call_id = (await services.calls.status(tenant, call_id)).id
    elif not CALL_ID.fullmatch(call_id):
        raise UnknownCall(f"{call_id[:100]!r} is not a call's id: expected call_… or cid_….")
    source = services.streams.open(tenant, call_id, after)
    try:
        piece, is_over = await source.read(0.0)
    except BaseException:
        source.close()
        raise
    if is_over and not piece:
        return Response(status_code=204)
    stream = EventStream(exchange_of(request.scope), HEADERS)
    if not await send_source(source, stream, request.receive, piece, is_over=is_over):
        raise ClientGone
    return None


def _last_event(text: str) -> int:
    """The number in a `Last-Event-ID`; without one all events are asked for."""
    if not text:
        return 0
    if EVENT_ID.fullmatch(text) is None:
        raise BadInput(
            f"Last-Event-ID: expected the id of an event, a whole number, not {text[:40]!r}.", field="Last-Event-ID"
        )
    return int(text)
