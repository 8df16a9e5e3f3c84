"""One live call at its origin's gateway: its state machine, its caller, and what is held for it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import BodyRef
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallEvent, CallResult, ChunkEvent, PreparedCall, StageEvent
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
class InFlightCall:
    """A call, from `begin` to its answer. `answer` is done when it is over."""

    call: PreparedCall
    shard: int
    """Of its function."""
    origin: Origin
    answer: asyncio.Future[CallResult]
    budget: ByteBudget
    timer: asyncio.TimerHandle | None = None
    heard: float = UNSENT
    """When it was sent, or its agent last said something of it; UNSENT: its agent knows nothing of its grant yet."""
    body: BodyRef | None = None
    place: BodyRef | None = None
    """Where an answer too large for the bus is left."""
    _events: asyncio.Queue[CallEvent | None] | None = None
    """Of a stream. Bounded by what the origin lets the guest send before it is read, and by the budget."""
    _held: int = 0

    def __post_init__(self) -> None:
        if self.call.stream:
            self._events = asyncio.Queue()

    def stage(self, name: str, ms: float, /, **detail: object) -> None:
        """Tell the caller of a stage, if it listens."""
        if self._events is not None and not self.answer.done():
            self._events.put_nowait(StageEvent(name=name, ms=ms, detail=detail))

    def chunk(self, seq: int, data: bytes) -> None:
        """Keep a chunk until the caller takes it.

        Raises:
            Unavailable: if the gateway holds too many bytes already, of all or of this tenant.
        """
        if self._events is not None:
            self.budget.take(len(data), self.call.tenant)
            self._held += len(data)
            self._events.put_nowait(ChunkEvent(seq=seq, data=data))

    def finish(self, result: CallResult) -> None:
        """The call has succeeded."""
        if not self.answer.done():
            self.answer.set_result(result)
            self._over()

    def fail(self, error: PilotlightError) -> None:
        """The call has failed."""
        if not self.answer.done():
            # Its traceback knows frames that know this call: a cycle, which would wait for the garbage collector.
            self.answer.set_exception(error.with_traceback(None))
            self.answer.exception()  # somebody may have stopped waiting: that is no warning
            self._over()

    def _over(self) -> None:
        if self._events is not None:
            self._events.put_nowait(None)

    async def events(self) -> AsyncIterator[CallEvent]:
        """What happens in a stream, in order; raises what the call failed with."""
        while self._events is not None and (event := await self._events.get()) is not None:
            yield event
            if isinstance(event, ChunkEvent):
                self.budget.give_back(len(event.data), self.call.tenant)
                self._held -= len(event.data)
        yield await self.answer

    def release(self) -> None:
        """Give back what is held for it."""
        self.budget.give_back(self._held, self.call.tenant)
        self._held = 0
        if self.timer is not None:
            self.timer.cancel()

    def status(self, at: float) -> CallStatus:
        """The call as the API shows it."""
        state, error = STATES[self.origin.state], None
        if self.answer.done() and (failure := self.answer.exception()) is not None:
            failure = redact_for_caller(failure, self.call) if isinstance(failure, PilotlightError) else failure
            code = failure.wire_code if isinstance(failure, PilotlightError) else "internal"
            state = "cancelled" if code == "cancelled" else "failed"
            error = {"code": code, "detail": getattr(failure, "detail", str(failure))}
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
