"""A call that a container holds, from its acceptance to its last frame; instants are monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from pilotlight_core.model.messages.agent_messages import Outcome, RemoteError, Run, Spent, Stages
from pilotlight_runtime.calls.waiting_calls import NO_NOTE


class CallPhase(Enum):
    """Where a held call is."""

    FETCHING = auto()  # its large input is on the way
    WAITING = auto()  # for the guest, or for its batch
    RUNNING = auto()  # the guest has it
    LEAVING = auto()  # its large answer is on the way


@dataclass(frozen=True, kw_only=True, slots=True)
class CallOutcome:
    """How a call ended, whatever the guest may still say of it."""

    outcome: Outcome
    reason: str = ""
    error: RemoteError | None = None
    output: bytes = b""


@dataclass(kw_only=True, slots=True, eq=False)
class AcceptedCall:
    """One call in one container."""

    run: Run
    accepted: float
    start_by: float
    """Not handed to the guest by then: it is refused as expired."""
    ends_by: float
    """The caller's deadline. Its origin cancels it then; long after it, the origin is taken for dead."""
    input: bytes
    phase: CallPhase = CallPhase.WAITING
    ready: float = 0.0
    """When its input was here."""
    started: float = 0.0
    executed: float = 0.0
    """When the guest had answered."""
    execute_ms: float = 0.0
    batch_size: int = 1
    last_seq: int = 0
    """Chunks relayed."""
    heard_seq: int = 0
    """Chunks that the guest has sent: also those that are dropped, once it is decided."""
    upto: int = 0
    """Chunks that the origin has passed on."""
    read_at: float = 0.0
    """When the origin last did."""
    note: int = NO_NOTE
    """Where it is noted as not started."""
    spent: Spent | None = None
    """What it cost, while its answer is on the way."""
    verdict: CallOutcome | None = None
    """Decided before the guest has answered: what it still sends for the call is dropped."""

    @property
    def was_started(self) -> bool:
        """Whether the guest has been given it."""
        return self.phase in (CallPhase.RUNNING, CallPhase.LEAVING)

    def stages(self, at: float) -> Stages:
        """Where the time went, up to `at`."""
        started = self.started or at
        return Stages(
            fetch=_ms(self.accepted, self.ready) if self.run.body is not None else 0.0,
            batch_wait=_ms(self.ready, started) if self.ready else 0.0,
            execute=self.execute_ms,
            total=_ms(self.accepted, at),
        )


def _ms(since: float, until: float) -> float:
    return round(max(0.0, until - since) * 1000, 3)
