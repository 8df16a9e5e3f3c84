"""Messages between gateways about jobs: the work queue's entries, and positions in it."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.message import Message


class JobNote(msgspec.Struct, frozen=True, array_like=True):
    id: str
    run_at: float = 0.0


class JobsStored(Message, frozen=True, kw_only=True):
    """Jobs of one flow that were stored: a message of the work queue. It can be rebuilt from their records."""

    jobs: tuple[JobNote, ...]


class AskJob(Message, frozen=True, kw_only=True):
    """Ask the home of a job's function for the job's position in its queue."""

    flow: str
    """The subject of its work queue."""
    job: str


class JobPlace(Message, frozen=True, kw_only=True):
    """The answer to `AskJob`; None: unknown."""

    position: int | None = None
    """Number of jobs of its flow before it."""
    seconds: float | None = None
    """Estimated time until it starts."""
