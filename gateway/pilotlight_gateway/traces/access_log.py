"""A line in the log for each request, or for those that failed; never with a payload, and never more than so many.

off      none; what the platform or a function failed at is logged all the same (`log_failure`)
errors   each request that is answered with an error, and each call that was slow
all      each request
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import structlog

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.trace_context import trace_id_of
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.traces.trace_keeper import RefusedAsk

OFF, ERRORS, ALL = "off", "errors", "all"
PROBES = ("/readyz", "/healthz")
"""A process that starts or ends says no to these all the time, which is no error."""
LINES_PER_S = 100
"""More requests than this are counted, and the count is logged."""

log = structlog.get_logger(__name__)


class IdentifiedRequest(Protocol):
    """A request, as a line in the log names it."""

    @property
    def request_id(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def route(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def call(self) -> PreparedCall | None: ...


class LoggedRequest(IdentifiedRequest, Protocol):
    """A request that has ended."""

    arrived_at: float
    status: int

    @property
    def called(self) -> VersionRecord | None: ...


class RefusalSink(Protocol):
    """Keeps what was refused."""

    def refused(self, ask: RefusedAsk, error: PilotlightError, total_ms: float) -> None:
        """A request for a call is answered with an error."""
        ...


def ids_in_log(request: IdentifiedRequest) -> dict[str, str]:
    """By what a line in the log names a request: its ids, whose it is, and the trace of its call."""
    call_id, call = request.call_id, request.call
    trace = trace_id_of(call_id, call.traceparent if call is not None else "") if call_id else ""
    named = {
        "request_id": request.request_id, "route": request.route, "call": call_id,
        "tenant": request.principal.tenant, "version": request.version, "trace_id": trace,
    }  # fmt: skip
    return {key: value for key, value in named.items() if value}


def is_written(error: PilotlightError) -> bool:
    """Whether `log_failure` writes an error down, whatever the access log is."""
    # Refusals come by the thousand when there is least time to write each of them down.
    return error.meaning.status >= 500 and error.meaning.status != 503


def log_failure(request: IdentifiedRequest, error: PilotlightError) -> None:
    """Write down a failure of the platform or of a function; what the caller did wrong is counted only."""
    if error.meaning.status >= 500:
        write = log.info if is_written(error) else log.debug
        write("a request failed", code=error.wire_code, **ids_in_log(request))


class AccessLog:
    """Logs requests, and tells `sink` of those for calls that failed. `clock`: monotonic seconds."""

    def __init__(
        self,
        mode: str = OFF,
        sink: RefusalSink | None = None,
        routes: frozenset[str] = frozenset(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`routes`: those whose requests are calls."""
        self._mode = mode
        self._sink = sink
        self._routes = routes
        self._clock = clock
        self.logs_all = mode == ALL
        """Whether it is told of requests that went well too."""
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def failed(self, request: LoggedRequest, error: PilotlightError, status: int) -> None:
        """A request is answered with an error."""
        ms = (self._clock() - request.arrived_at) * 1000.0
        sink = self._sink
        if sink is not None and request.route in self._routes:
            tenant, call_id = request.principal.tenant, request.call_id
            ask = RefusedAsk(tenant, request.request_id, call_id, request.route, request.called)
            sink.refused(ask, error, ms)
        is_shown = self._mode == ALL or (self._mode == ERRORS and request.route not in PROBES)
        if is_shown and not is_written(error):
            self._write(request, status, ms, error.wire_code)

    def ended(self, request: LoggedRequest) -> None:
        """A request was answered; called of all if `logs_all`, and not of those that `failed`."""
        self._write(request, request.status, (self._clock() - request.arrived_at) * 1000.0, "")

    def note_slow(self, call: KeptCall) -> None:
        """A call was slow."""
        if self._mode == ERRORS and self._has_room():
            log.info(
                "a call was slow", call=call.id, tenant=call.tenant, trace_id=call.trace_id, function=call.function,
                version=call.version, ms=round(call.total_ms, 1), slow_ms=call.slow_ms,
            )  # fmt: skip

    def _write(self, request: LoggedRequest, status: int, ms: float, code: str) -> None:
        if not self._has_room():
            return
        named = {"code": code} | ids_in_log(request) if code else ids_in_log(request)
        log.info("a request ended", **named, status=status, ms=round(ms, 1))

    def _has_room(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            if self._left_out:
                log.info("requests were not logged, since there were too many", count=self._left_out)
            self._second, self._lines, self._left_out = second, 0, 0
        self._lines += 1
        if self._lines > LINES_PER_S:
            self._left_out += 1
            return False
        return True
