"""The port of whoever is told of calls that end: tallies, and what keeps traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import structlog

from pilotlight_core.model.errors import BadInput, BadOutput, CallFailed, FunctionRaised, LoadFailed, PilotlightError
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall

log = structlog.get_logger(__name__)


class FailedCall(NamedTuple):
    """A call that failed, or a request that was refused before it was one."""

    code: str
    tenant: str
    """Who calls; "": it is not known."""
    called: VersionRecord | None
    """The version that was asked for; None: it is not known."""
    call: PreparedCall | None
    """None: it was refused before it was one."""
    course: CallResult | None
    """How far it came: stages, steps of a start, attempts, container, usage. None: no container was asked for."""
    total_ms: float
    is_client_gone: bool
    """Whether its client hung up, so that nobody was told."""
    detail: str = ""
    """The platform's sentence; "": the function's code said it, and it is its tenant's."""


FUNCTIONS_OWN = (BadInput, BadOutput, FunctionRaised, LoadFailed)
"""Errors whose words may have a tenant's data in them."""


def platforms_words(error: PilotlightError, call: PreparedCall | None) -> str:
    """What an error says, if the platform has said it, and to whom it is told, which is whoever called; "": a function
    has, or it is about what another tenant's function did.
    """
    if isinstance(error, FUNCTIONS_OWN):
        return ""
    is_owners = isinstance(error, CallFailed) and call is not None and call.version.tenant != call.tenant
    return "" if is_owners else error.detail


class CallSink(Protocol):
    """Who is told of calls that end, within their turn of the event loop: it only notes what it needs."""

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        """A call has ended well. `stages` has `respond` too; `call.pace` tells how a stream came."""
        ...

    def call_failed(self, failed: FailedCall) -> None:
        """A call has failed."""
        ...


def report_ended(
    sinks: Iterable[CallSink], call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float
) -> None:
    """Tell each sink. What goes wrong there costs no call its answer, and no job a run more."""
    for sink in sinks:
        try:
            sink.call_ended(call, result, stages, total_ms)
        except Exception:
            log.exception("a call that has ended was not noted", call=call.call_id)


def report_failed(sinks: Iterable[CallSink], failed: FailedCall) -> None:
    """As `report_ended`: its error is what its caller hears."""
    for sink in sinks:
        try:
            sink.call_failed(failed)
        except Exception:
            log.exception("a call that has failed was not noted", code=failed.code)


FailedStartTaker = Callable[[PreparedCall, str, CallResult | None], None]


def report_failed_start(taker: FailedStartTaker, call: PreparedCall, code: str, course: CallResult | None) -> None:
    """As `report_ended`: the call is run again, whatever goes wrong there."""
    try:
        taker(call, code, course)
    except Exception:
        log.exception("a start that has failed was not noted", call=call.call_id)
