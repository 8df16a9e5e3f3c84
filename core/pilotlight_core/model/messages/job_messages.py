"""Messages about jobs: the work queue's entries, positions in it, and jobs whose time is known but has not come."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.message import Message


class JobNote(msgspec.Struct, frozen=True, array_like=True):
    id: str
    run_at: float = 0.0
    """The unix second at which it may begin; 0: at once."""
    function: str = ""
    """`tenant:app.function`, of a job that may not begin at once; "": a gateway of 0.1 has not said it."""


def note_of(job: str, function: str, run_at: float, at: float) -> JobNote:
    """The note of a queued job at the unix second `at`."""
    return JobNote(job, run_at, function) if run_at > at else JobNote(job)


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


class JobsDue(msgspec.Struct, frozen=True, array_like=True):
    """Jobs of one function that become due, about at the same time."""

    function: str
    """`tenant:app.function`."""
    due_in_ms: float
    """Until the first of them may begin."""
    jobs: int
    """At least so many may begin within a minute from then."""


class PlannedStarts(Message, frozen=True, kw_only=True):
    """What a home's jobs will ask for soon, each second while there is any."""

    items: tuple[JobsDue, ...]
