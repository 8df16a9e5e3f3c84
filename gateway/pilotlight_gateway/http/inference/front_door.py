"""What every request to a front passes before its call: who asks, whether calls are taken, and the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.http.calls.call_endpoint import CallEntry
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.protocol.audited_changes import make_audited
from pilotlight_gateway.http.protocol.http_exchange import Exchange, authorization, exchange_of

FrontWork = Callable[[Scope, Receive], Awaitable[None]]
"""Answers the request of a caller that may call."""


class FrontDoor:
    """Serves an operation of a front: a plain ASGI application, since a call is no request that counts as open."""

    def __init__(self, operation: Operation[Any], entry: CallEntry, work: FrontWork) -> None:
        self.operation = operation
        self._entry = entry
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the exchange sends
        entry, exchange = self._entry, exchange_of(scope)
        exchange.route, exchange.dialect = self.operation.path, self.operation.dialect
        principal = await entry.authenticator.authenticate(authorization(scope))
        exchange.note_principal(principal)
        if principal.break_glass:
            await self._refuse_audited(scope, exchange)
        principal.require(*self.operation.scopes)
        with entry.gate.around(exchange.task):
            try:
                await self._work(scope, receive)
            except PilotlightError as error:
                if exchange.call_id or exchange.called is not None:
                    entry.recorder.request_failed(error, exchange)
                raise

    async def _refuse_audited(self, scope: Scope, exchange: Exchange) -> None:
        """Write down that a key that calls nothing has tried to."""

        async def refuse() -> Response | None:
            exchange.principal.require(*self.operation.scopes)
            return None

        await make_audited(self._entry.audit, self.operation, scope, exchange, refuse)
