"""One live call at its origin's gateway: its state machine, and what is held for it. Who waits for it is its caller."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import BodyRef
from pilotlight_gateway.calls.call_port import CallResult, PreparedCall
from pilotlight_gateway.calls.effects import FinishCall
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.calls.redaction import redact_for_caller

UNSENT = math.inf
STATES = {
    OriginState.QUEUED: "queued",
    OriginState.WAITING: "queued",
    OriginState.SENT: "running",
    OriginState.RUNNING: "running",
    OriginState.DONE: "succeeded",
}


@dataclass(kw_only=True, eq=False)
class InFlightCall(ABC):
    """A call, from its begin to its answer. Who waits for it is told by the four abstract verbs."""

    call: PreparedCall
    shard: int
    """Of its function."""
    origin: Origin
    heard: float = UNSENT
    """When it was sent, or its agent last said something of it; UNSENT: its agent knows nothing of its grant yet."""
    body: BodyRef | None = None
    place: BodyRef | None = None
    """Where an answer too large for the bus is left."""
    error: PilotlightError | None = None
    """What it has failed with."""

    @abstractmethod
    def stage(self, name: str, ms: float, /, **detail: object) -> None:
        """The call has entered a stage."""

    @abstractmethod
    def chunk(self, seq: int, data: bytes) -> None:
        """The next piece of its stream.

        Raises:
            Unavailable: if the gateway holds too many bytes already, of all or of this tenant.
        """

    @abstractmethod
    def finish(self, result: CallResult) -> None:
        """The call has succeeded."""

    @abstractmethod
    def fail(self, error: PilotlightError) -> None:
        """The call has failed."""

    def status(self, at: float) -> CallStatus:
        """The call as the API shows it."""
        state, error = STATES[self.origin.state], None
        if self.error is not None:
            failure = redact_for_caller(self.error, self.call)
            state = "cancelled" if failure.wire_code == "cancelled" else "failed"
            error = {"code": failure.wire_code, "detail": failure.detail}
        grant = self.origin.grant
        return CallStatus(
            id=self.call.id,
            state=state,
            version=self.call.version.ref,
            age_ms=(at - self.call.arrived) * 1000.0,
            client_id=self.call.client_id,
            container=grant.container if grant else None,
            error=error,
        )


def result_of(action: FinishCall, output: bytes) -> CallResult:
    """What a call has come to that has succeeded."""
    return CallResult(
        output=output,
        spent=action.spent,
        stages=action.stages,
        cold_start=action.cold_start,
        attempts=action.attempts,
        container=action.container,
        batch_size=action.spent.batch_size if action.spent else 1,
    )
