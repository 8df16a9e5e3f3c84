"""What gateways tell each other of jobs: the work queue's message, and where a job is in its queue."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.agent_messages import Message


class JobNote(msgspec.Struct, frozen=True, array_like=True):
    """One job in a message of the work queue."""

    id: str
    run_at: float = 0.0


class JobsStored(Message, frozen=True, kw_only=True):
    """The work queue's message: these jobs of one flow were stored. It can be made again from their records."""

    jobs: tuple[JobNote, ...]


class AskJob(Message, frozen=True, kw_only=True):
    """Where is this job in its queue? Asked of the home of its function."""

    flow: str
    """The subject of its work queue."""
    job: str


class JobPlace(Message, frozen=True, kw_only=True):
    """The answer to `AskJob`: None is what is not known."""

    position: int | None = None
    """Jobs of its flow that are before it; 0: it is next."""
    seconds: float | None = None
    """Estimated, until it starts."""
