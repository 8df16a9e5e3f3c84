"""Messages about jobs: the work queue's entries, positions in it, and jobs whose time is known but has not come."""

from __future__ import annotations

from typing import Protocol

import msgspec

from pilotlight_core.model.messages.message import Message


class JobNote(msgspec.Struct, frozen=True, array_like=True):
    id: str
    run_at: float = 0.0
    """The unix second at which it may begin; 0: at once."""
    function: str = ""
    """`tenant:app.function`, of a job that may not begin at once; "": a gateway of 0.1 has not said it."""
    version: str = ""
    """The id of the version that it will run; "": the one that is deployed by then."""


class NotedJob(Protocol):
    """What of a job's record its note says."""

    @property
    def id(self) -> str: ...

    @property
    def function(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def run_at(self) -> float: ...

    @property
    def tick(self) -> int: ...


def note_of(job: NotedJob, at: float) -> JobNote:
    """The note of a queued job at the unix second `at`. A tick runs what is deployed by then."""
    return (
        JobNote(job.id, job.run_at, job.function, "" if job.tick else job.version)
        if job.run_at > at
        else JobNote(job.id)
    )


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
    version: str = ""
    """The id of the version that they will run; "": the one that is deployed by then."""


class PlannedStarts(Message, frozen=True, kw_only=True):
    """What a home's jobs will ask for soon, each second while there is any."""

    items: tuple[JobsDue, ...]
