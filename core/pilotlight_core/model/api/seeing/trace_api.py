"""Bodies about kept calls: their list, and what became of one of them."""

from __future__ import annotations

import msgspec


class KeptCallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call that failed, was slow or was sampled."""

    id: str
    """The call's; of a request that was refused before it was a call, the request's."""
    trace_id: str
    function: str
    """`app.function`, of another tenant `tenant:app.function`; "": it was refused before that was known."""
    version: str
    """`app.function@v7`."""
    kept: str
    """Why it is kept: error, slow, asked or sampled."""
    code: str
    """Of its failure; "": it ended well."""
    arrived_at: float
    """Unix seconds."""
    total_ms: float
    longest: str
    """What took longest: gateway, queue, start, transport, batch_wait, execute, respond or a hook."""
    longest_ms: float
    cold_start: bool
    """Whether it waited for a container to start."""
    attempts: int
    gateway: str
    """Where its caller was, for operators; else ""."""


class KeptCallList(msgspec.Struct, frozen=True, kw_only=True):
    """Kept calls, the newest first."""

    calls: tuple[KeptCallRow, ...]
    unanswered: tuple[str, ...] = ()
    """Gateways that did not answer in time, to tenants without their names: what they keep is not here."""


class WaterfallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a call's time."""

    name: str
    begin_ms: float
    """Since its arrival."""
    ms: float
    attempt: int = 0
    """Of several, from 1; 0: it belongs to none."""
    step_of: str = ""
    """The part that it is a step of; "": it is none."""


class ExplainedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A container that a call was sent to."""

    container: str
    """"" for whoever calls another tenant's function."""
    outcome: str
    """ok, how it failed (raised, died, timeout, …), or why the container did not take it (no_slot, gone, …)."""
    reason: str
    started: bool
    ms: float


class CallExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why one call took as long as it did, or was refused."""

    id: str
    trace_id: str
    function: str
    version: str
    method: str
    kept: str
    code: str
    arrived_at: float
    total_ms: float
    cold_start: dict[str, float] | None
    """The steps of the start of a container that it waited for, in ms."""
    batch_size: int
    sentences: tuple[str, ...]
    """What happened, in words, the most important first."""
    rows: tuple[WaterfallRow, ...]
    """Where its time went, end to end."""
    attempts: tuple[ExplainedAttempt, ...]
    gateway: str
    """As in a list."""
