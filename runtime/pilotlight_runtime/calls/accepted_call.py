"""A call that a container holds, from its acceptance to its last frame; instants are monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from pilotlight_core.model.messages.agent_messages import Outcome, RemoteError, Run, Spent, Stages
from pilotlight_runtime.calls.waiting_calls import NO_NOTE


class CallPhase(Enum):
    """Where an accepted call is."""

    FETCHING = auto()  # its large input is on the way
    WAITING = auto()  # for the guest, or for its batch
    RUNNING = auto()  # the guest has it
    UPLOADING = auto()  # its large answer is on the way


@dataclass(frozen=True, kw_only=True, slots=True)
class CallOutcome:
    """How a call ended."""

    outcome: Outcome
    reason: str = ""
    error: RemoteError | None = None
    output: bytes = b""


@dataclass(kw_only=True, slots=True)
class StreamProgress:
    """How far a stream's chunks have come, by their numbers."""

    heard_seq: int = 0
    """The last chunk from the guest, also when the call is decided and the chunk was dropped."""
    sent_seq: int = 0
    """The last chunk sent to the origin."""
    read_seq: int = 0
    """The last chunk that the origin has passed on to the caller."""
    full_since_at: float = 0.0
    """When the window was filled, or last moved."""


@dataclass(kw_only=True, slots=True, eq=False)
class AcceptedCall:
    """One call in one slot of one container. `SlotTable.accept` makes it; the container's `CallRunner` runs it."""

    run: Run
    accepted_at: float
    start_deadline_at: float
    """A call not handed to the guest by then is refused as expired."""
    deadline_at: float
    """The caller's deadline, at which its origin cancels the call; an origin that does not is taken for dead."""
    input: bytes
    phase: CallPhase = CallPhase.WAITING
    ready_at: float = 0.0
    """When its input was complete."""
    started_at: float = 0.0
    """When the guest got it; of an item that is run again alone, the last time."""
    execute_ms: float = 0.0
    batch_size: int = 1
    stream: StreamProgress = field(default_factory=StreamProgress)
    note: int = NO_NOTE
    """Its note among the `WaitingCalls`."""
    spent: Spent | None = None
    """What it cost, while its answer is on the way."""
    decided: CallOutcome | None = None
    """An outcome that was decided before the guest answered: it replaces the guest's answer."""
    is_cancelled: bool = False

    @classmethod
    def of(cls, run: Run, at: float, received_at: float) -> AcceptedCall:
        """The call of a `Run` that is accepted at `at`; its time limits count from `received_at`."""
        return cls(
            run=run,
            accepted_at=at,
            start_deadline_at=received_at + run.start_within_ms / 1000,
            deadline_at=received_at + run.timeout_ms / 1000,
            input=run.input,
            ready_at=at,
        )

    @property
    def call_id(self) -> str:
        return self.run.call_id

    @property
    def grant_number(self) -> int:
        return self.run.grant_number

    @property
    def was_started(self) -> bool:
        """Whether the guest has been given it."""
        return self.phase in (CallPhase.RUNNING, CallPhase.UPLOADING)

    def start(self, at: float) -> None:
        """Count it as started."""
        self.phase, self.started_at = CallPhase.RUNNING, at

    def stages(self, at: float) -> Stages:
        """Where the time went, up to `at`."""
        started_at = self.started_at or at
        return Stages(
            fetch=_ms(self.accepted_at, self.ready_at) if self.run.body is not None else 0.0,
            batch_wait=_ms(self.ready_at, started_at) if self.ready_at else 0.0,
            execute=self.execute_ms,
            total=_ms(self.accepted_at, at),
        )


def _ms(began_at: float, end_at: float) -> float:
    return round(max(0.0, end_at - began_at) * 1000, 3)
