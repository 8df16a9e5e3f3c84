"""Lines about requests in the log."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from pilotlight_core.model.errors import FunctionRaised, PilotlightError, TooMuch
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.tracing.trace_context import own_trace_id
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.traces.access_log import ALL, ERRORS, LINES_PER_S, OFF, AccessLog, log_failure
from pilotlight_gateway.traces.trace_keeper import RefusedAsk
from tests.builders.kept import CALL_ID, kept_call

ERROR = TooMuch("Slow down.", code="rate_limited")


@dataclass
class Ended:
    """A request that has ended."""

    request_id: str = "req_1"
    call_id: str = CALL_ID
    route: str = "/calls"
    version: str = "ver_1"
    principal: Principal = field(default_factory=lambda: Principal(tenant="acme", key_id="k", scopes=frozenset()))
    called: VersionRecord | None = None
    call: PreparedCall | None = None
    arrived_at: float = 0.0
    status: int = 200


@dataclass
class Sink:
    """Keeps what was refused."""

    asks: list[RefusedAsk] = field(default_factory=list)

    def refused(self, ask: RefusedAsk, _: PilotlightError, __: float) -> None:
        self.asks.append(ask)


@pytest.mark.parametrize(("mode", "lines"), [(OFF, 0), (ERRORS, 1), (ALL, 2)])
def test_as_much_is_logged_as_is_asked_for(mode: str, lines: int) -> None:
    log = AccessLog(mode, clock=lambda: 0.5)
    with capture_logs() as logged:
        log.failed(Ended(), ERROR, 429)
        if log.logs_all:
            log.ended(Ended())
    assert len(logged) == lines


def test_a_probe_that_is_told_no_is_no_error() -> None:
    """Whatever asks whether a gateway is ready asks each second."""
    for mode, lines in ((ERRORS, 0), (ALL, 1)):
        with capture_logs() as logged:
            AccessLog(mode, clock=lambda: 0.5).failed(Ended(route="/readyz"), ERROR, 503)
        assert len(logged) == lines


def test_a_line_says_whose_request_it_was_and_in_which_trace() -> None:
    """And never what it carried."""
    log = AccessLog(ERRORS, Sink(), clock=lambda: 0.5)
    with capture_logs() as logged:
        log.failed(Ended(), ERROR, 429)
        log.note_slow(kept_call())
    assert logged == [
        {"event": "a request ended", "log_level": "info", "request_id": "req_1", "route": "/calls", "status": 429,
         "ms": 500.0, "call": CALL_ID, "tenant": "acme", "code": "rate_limited", "version": "ver_1",
         "trace_id": own_trace_id(CALL_ID)},
        {"event": "a call was slow", "log_level": "info", "call": CALL_ID, "tenant": "acme",
         "trace_id": kept_call().trace_id, "function": "acme:shop.rank", "version": "ver_3", "ms": 1_000.0,
         "slow_ms": 300.0},
    ]  # fmt: skip


def test_a_flood_is_a_number() -> None:
    """Each second has room for so many lines."""
    at = [0.0]
    log = AccessLog(ERRORS, clock=lambda: at[0])
    with capture_logs() as logged:
        for _ in range(10 * LINES_PER_S):
            log.failed(Ended(), ERROR, 429)
        at[0] = 1.0
        log.failed(Ended(), ERROR, 429)
    assert len(logged) == LINES_PER_S + 2
    assert logged[-2]["count"] == 9 * LINES_PER_S


def test_a_refused_call_is_kept_whatever_is_logged() -> None:
    """A refused request that is no call is not."""
    sink = Sink()
    log = AccessLog(OFF, sink, frozenset({"/calls"}))
    log.failed(Ended(call_id=""), ERROR, 429)
    log.failed(Ended(route="/apps"), ERROR, 404)
    assert [ask.request_id for ask in sink.asks] == ["req_1"]


def test_a_failure_is_logged_once_whatever_the_access_log_is() -> None:
    """With the same ids: what went wrong here or in a function is written down in any case."""
    raised = FunctionRaised("hush")
    for mode in (OFF, ERRORS):
        log = AccessLog(mode, clock=lambda: 0.5)
        with capture_logs() as logged:
            log_failure(Ended(), raised)
            log.failed(Ended(), raised, 500)
        assert [(line["event"], line["call"], line["code"]) for line in logged] == [
            ("a request failed", CALL_ID, "function_raised")
        ]
        assert "hush" not in str(logged)
