"""Paths below /v2 that are no operations: what Triton's clients can ask of a server that is one machine's."""

from __future__ import annotations

import re

from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import NotFound
from pilotlight_gateway.http.inference.model_endpoints import not_offered
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.http_exchange import exchange_of

PATH = "/v2/{path:path}"
EXTENSIONS = re.compile(
    r"/v2/(repository/.*|(system|cuda)sharedmemory/.*|trace/setting|models/[^/]+/trace/setting|logging)"
)


class OtherPaths:
    """Refuses them in the dialect of the protocol."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - nothing is read
        exchange = exchange_of(scope)
        exchange.route, exchange.dialect = PATH, Dialect.V2
        if EXTENSIONS.fullmatch(scope["path"]):
            raise not_offered(scope["path"])
        raise NotFound(f"There is nothing at {scope['path'][:200]}.")
