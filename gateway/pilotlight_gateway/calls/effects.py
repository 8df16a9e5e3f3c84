"""What an origin wants done: plain values that its driver performs, in the order in which they were returned.

Those for the home always go to the *present* home, wherever it is; it can tell what was meant for an earlier one.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import Cancel, Grant, Run, Window
from pilotlight_core.model.messages.scheduling import Enqueue, HandBack, Settle, Withdraw
from pilotlight_gateway.calls.call_port import CallResult


class SendRun(msgspec.Struct, frozen=True):
    """To the agent of `node`: run it. If nobody listens there: `Origin.no_responders(run.grant)`."""

    node: str
    instance: str
    """The incarnation that the grant is for."""
    run: Run


class SendControl(msgspec.Struct, frozen=True):
    """To the agent of `node`: a control message."""

    node: str
    message: Cancel | Window


class RelayChunk(msgspec.Struct, frozen=True):
    """To the caller: the next chunk of the stream."""

    seq: int
    data: bytes


class ReportStage(msgspec.Struct, frozen=True):
    """To the caller, if it streams: the call has entered a stage, `ms` after its request arrived."""

    name: str
    ms: float


class FailCall(msgspec.Struct, frozen=True, kw_only=True):
    """To the caller: the call has failed. Nothing follows."""

    error: PilotlightError
    left: Grant | None
    """Of a start that may run on; its agent reports how it ended."""


Effect = (
    Enqueue | HandBack | Settle | Withdraw | SendRun | SendControl | RelayChunk | ReportStage | CallResult | FailCall
)
"""A `CallResult` goes to the caller: the call has succeeded, and nothing follows."""
