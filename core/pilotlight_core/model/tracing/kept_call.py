"""What is kept of a call that somebody may ask about: a failed, slow or sampled one. Never a payload.

What a node tells of it, such as the name of a step, has the bounds of `bounded`: a node may be hostile.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import Count, Duration, Rising, ShortText, StepTimes, Units

MOST_MATES = 32
"""Of one batch, that are told."""
MOST_ATTEMPTS = 16
"""That are kept of one call; a call has fewer."""
LONGEST_REASON = 300
"""Characters of a sentence that is kept."""
CallStages = Annotated[dict[Annotated[str, Meta(max_length=64)], Duration], Meta(max_length=16)]
"""Milliseconds by stage."""
BatchMates = Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=MOST_MATES)]
"""The traceparents of the spans of their execution."""
KeptText = Annotated[str, Meta(max_length=1_024)]


WELL = "ok"
"""The outcome of an attempt that ended well."""


class KeptWhy(StrEnum):
    """Why a call is kept."""

    ERROR = "error"  # it failed, or was refused
    SLOW = "slow"  # it took longer than its function's service level, or than nearly all others
    ASKED = "asked"  # its caller's traceparent says so
    SAMPLED = "sampled"  # one of so many


class CallTrigger(StrEnum):
    """What made a call."""

    HTTP = "http"
    JOB = "job"
    NESTED = "nested"


class KeptAttempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container that a call was sent to, and the milliseconds from the attempt before to its end."""

    container: ShortText = ""
    node: ShortText = ""
    outcome: ShortText = ""
    """"ok", an `Outcome`, a `Refusal`, or "lost": nobody says how it ended."""
    reason: KeptText = ""
    """For the function's owner."""
    started: bool = True
    """Whether it may have begun there."""
    ahead: Count = 0
    """How many calls waited at the home when it came there."""
    queue: Duration = 0.0
    start: Duration = 0.0
    transport: Duration = 0.0
    batch_wait: Duration = 0.0
    execute: Duration = 0.0
    mates: BatchMates = ()
    """The other calls of its batch."""


class KeptCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call."""

    id: ShortText
    """The call's; of a request that was refused before it was a call, the request's."""
    trace_id: ShortText = ""
    parent_span: ShortText = ""
    """The caller's; "": the call began the trace."""
    state: KeptText = ""
    """The caller's tracestate."""
    link: KeptText = ""
    """The traceparent of the request that stored the job, with its tracestate; the call has a trace of its own."""
    threshold: ShortText = ""
    """Of a sampled one, OpenTelemetry's `th`: of how many it stands for."""
    tenant: ShortText
    """Who called."""
    function: ShortText = ""
    """`tenant:app.function` of the owner; "": it was refused before that was known."""
    ref: ShortText = ""
    """`app.function@v7`."""
    version: ShortText = ""
    method: ShortText = ""
    priority: ShortText = ""
    trigger: CallTrigger = CallTrigger.HTTP
    route: ShortText = ""
    """Of a request that was refused."""
    parent: ShortText = ""
    """The call that made it."""
    kept: KeptWhy
    code: ShortText = ""
    """Of a failure."""
    detail: KeptText = ""
    """The platform's sentence about it."""
    limits: Annotated[tuple[ShortText, ...], Meta(max_length=16)] = ()
    """Names of the limits that it ran into."""
    retry_after: Duration = 0.0
    arrived_ns: Rising = 0
    """Unix nanoseconds."""
    total_ms: Duration = 0.0
    slow_ms: Duration = 0.0
    """Beyond which it counts as slow."""
    stages: CallStages = {}
    cold_start: StepTimes | None = None
    attempts: Annotated[tuple[KeptAttempt, ...], Meta(max_length=MOST_ATTEMPTS)] = ()
    batch_size: Count = 0
    units: Units = {}
    stream: bool = False
    gateway: ShortText = ""
    """Where its caller was."""

    @property
    def owner(self) -> str:
        """Whose function it is; "": not known."""
        return self.function.partition(":")[0] if ":" in self.function else ""
