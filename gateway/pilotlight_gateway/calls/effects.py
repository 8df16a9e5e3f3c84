"""The effects of an origin's decisions: plain values that its driver performs in order.

Those for the home go to the *present* home, which recognises what was meant for an earlier one.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.call_messages import Cancel, Grant, Run, Window
from pilotlight_core.model.messages.scheduling import Enqueue, HandBack, Settle, Withdraw
from pilotlight_gateway.calls.attempts import Attempts
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall


class SendRun(msgspec.Struct, frozen=True):
    """To the agent of `node`: run the call. If it does not listen: `Origin.no_responders`."""

    node: str
    instance: str
    """The incarnation that the grant is for."""
    run: Run


class SendControl(msgspec.Struct, frozen=True):
    """To the agent of `node`: a control message."""

    node: str
    message: Cancel | Window


class RelayChunks(msgspec.Struct, frozen=True):
    """To the caller: the next chunks of the stream."""

    seq: int
    """Of the first one."""
    data: tuple[bytes, ...]


class ReportStage(msgspec.Struct, frozen=True):
    """To the caller of a stream: the call has entered a stage, `ms` after its request arrived."""

    name: str
    ms: float
    detail: dict[str, object] = {}


class HoldJournal(msgspec.Struct, frozen=True):
    """Of the gateway's memory: so many bytes are held from now on of the call's journal, instead of those before."""

    size: int


class FailedStart(msgspec.Struct, frozen=True):
    """To whoever compares versions: a start has failed, and the call is run again."""

    code: str
    course: CallResult
    """Its container, and its place there."""


class FailCall(msgspec.Struct, frozen=True, kw_only=True):
    """To the caller: the call has failed. Nothing follows."""

    error: PilotlightError
    left: Grant | None
    """Of a start that may run on; its agent will report its end."""


Effect = (
    Enqueue
    | HandBack
    | Settle
    | Withdraw
    | SendRun
    | SendControl
    | RelayChunks
    | ReportStage
    | HoldJournal
    | FailedStart
    | CallResult
    | FailCall
)
"""A `CallResult` is for the caller: the call has succeeded. Nothing follows."""


def failed_start(call: PreparedCall, code: str, attempts: Attempts) -> list[Effect]:
    """What is to be done because a start of a call that is run again has failed: nothing, if it is of no rollout."""
    grant = attempts.grant
    if grant is None or call.side is None:
        return []
    course = CallResult(output=b"", container=grant.container, nth=attempts.nth, batch=attempts.batch)
    return [FailedStart(code, course)]


def ignore_failed_start(_call: PreparedCall, _code: str, _course: CallResult | None) -> None:
    """In place of whoever compares versions, where nobody does."""
