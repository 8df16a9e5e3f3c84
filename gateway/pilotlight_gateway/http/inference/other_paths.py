"""Paths below /v2 that are no operations: what Triton's clients can ask of a server that is one machine's."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from pilotlight_gateway.http.inference.model_endpoints import not_offered
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.http_exchange import exchange_of

PATHS = (
    "/v2/repository/{path:path}", "/v2/systemsharedmemory/{path:path}", "/v2/cudasharedmemory/{path:path}",
    "/v2/trace/setting", "/v2/models/{model}/trace/setting", "/v2/logging",
)  # fmt: skip


class OtherPaths:
    """Refuses them in the dialect of the protocol."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - nothing is read
        exchange = exchange_of(scope)
        exchange.route, exchange.dialect = "/v2/{path}", Dialect.V2
        raise not_offered(scope["path"])
