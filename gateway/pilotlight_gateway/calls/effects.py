"""What an origin wants done: plain values that its driver performs, in the order in which they were returned.

Those for the home always go to the *present* home, wherever it is; it can tell what was meant for an earlier one.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import Cancel, Ended, Grant, Run, Spent, Window
from pilotlight_core.model.messages.scheduling import Enqueue, HandBack, Settle, Withdraw
from pilotlight_gateway.limits.call_usage import gpu_ms


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


class FinishCall(msgspec.Struct, frozen=True, kw_only=True):
    """To the caller: the call has succeeded. Nothing follows."""

    output: bytes
    answer_size: int
    """Not 0: the answer lies at the internal listener instead of in `output`."""
    spent: Spent | None
    """Of all its starts, as far as they ran on slices of one kind."""
    stages: dict[str, float]
    cold_start: dict[str, float] | None
    attempts: int
    container: str
    cost: float
    """GPU-milliseconds of all its starts of which that is known."""
    lost: int
    """Its starts of which it is not."""


class FailCall(msgspec.Struct, frozen=True, kw_only=True):
    """To the caller: the call has failed. Nothing follows."""

    error: PilotlightError
    cost: float
    """GPU-milliseconds of all its starts of which that is known."""
    starts: int
    """That are over."""
    lost: int
    """Those of them of which it is not known."""
    left: Grant | None
    """One that may run on; its agent will tell."""


Effect = (
    Enqueue | HandBack | Settle | Withdraw | SendRun | SendControl | RelayChunk | ReportStage | FinishCall | FailCall
)


def settlement_of(ended: Ended) -> Settle:
    """What the home must know of a call that has ended, whether or not anybody still waits for it."""
    return Settle(
        call_id=ended.call_id,
        container=ended.container,
        grant_number=ended.grant_number,
        cost=gpu_ms(ended.spent),
        frees=ended.frees,
        outcome=ended.outcome,
    )
