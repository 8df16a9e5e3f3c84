"""The outermost application: every request is named, counted, and answered even when something raises."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from pilotlight_core.model.errors import BadInput, NotFound, PilotlightError
from pilotlight_gateway.http.calls.call_endpoint import CallEndpoint
from pilotlight_gateway.http.calls.call_limits import CallLimits
from pilotlight_gateway.http.protocol.http_exchange import KEY, SERVED, Exchange
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.http.protocol.request_bodies import ClientGone
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics

log = structlog.get_logger(__name__)
CLIENT_CLOSED = 499


class Edge:
    """Sends calls straight to their endpoint and everything else to the routes."""

    def __init__(
        self,
        calls: CallEndpoint,
        routes: ASGIApp,
        *,
        limits: CallLimits,
        metrics: GatewayMetrics,
        clock: Callable[[], float],
    ) -> None:
        """`clock`: monotonic seconds."""
        self._calls = calls
        self._routes = routes
        self._limits = limits
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._routes(scope, receive, send)
            return
        exchange = scope[KEY] = Exchange(scope, send, self._clock())
        try:
            if self._calls.serves(scope):
                await self._calls(scope, receive, exchange)
            else:
                await self._routes(scope, receive, exchange)
        except PilotlightError as error:
            await self._answer_error(exchange, error)
        except HTTPException as error:
            await self._answer_error(exchange, _of_starlette(error, scope))
        except ClientGone:
            exchange.status = exchange.status or CLIENT_CLOSED
        except Exception as error:
            log.exception("a request failed unexpectedly", request_id=exchange.request_id, route=exchange.route)
            if exchange.status:
                raise  # the head is out: only a broken connection still tells the client
            await self._answer_error(exchange, PilotlightError(code="internal"), cause=error)
        finally:
            self._limits.release(exchange)
            self._metrics.requests[exchange.route, exchange.status] += 1
            # Both know the server's request, which knows the scope: cycles, which would wait for the garbage collector.
            del scope[KEY]
            scope.pop(SERVED, None)

    async def _answer_error(self, exchange: Exchange, error: PilotlightError, cause: Exception | None = None) -> None:
        if error.meaning.status >= 500 and cause is None:
            # Refusals are counted. They come by the thousand when there is least time to write each of them down.
            tell = log.debug if error.meaning.status == 503 else log.info
            tell("a request failed", request_id=exchange.request_id, code=error.wire_code, route=exchange.route)
        if exchange.status:
            log.warning("an answer broke off", request_id=exchange.request_id, code=error.wire_code)
            raise error
        problem = problem_of(error, exchange.request_id)
        await exchange.answer(problem.status, problem.headers, problem.encode())


def _of_starlette(error: HTTPException, scope: Scope) -> PilotlightError:
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        return BadInput(f"{scope['path']} does not take {scope['method']}.", code="method_not_allowed", allow=allow)
    if error.status_code == 404:
        return NotFound(f"There is nothing at {scope['path'][:200]}.")
    return BadInput(str(error.detail), code="bad_request")
