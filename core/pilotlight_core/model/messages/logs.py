"""What streams keep for people and for the judge of rollouts: the output of containers, events, compared calls."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import ShortText
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.seeing.compared_calls import MOST_COMPARED, ComparedCall

SENTENCE_LENGTH = 500
KIND_LENGTH = 64


class LogLine(msgspec.Struct, frozen=True):
    """One line of a container's output. `at` is unix seconds, `stream` is "stdout", "stderr" or "platform"."""

    at: Annotated[float, Meta(ge=0, le=1e11)]
    stream: ShortText
    text: str
    container: ShortText
    call_id: ShortText = msgspec.field(default="", name="call")

    @property
    def text_bytes(self) -> int:
        """The length of its text in UTF-8, in which it is sent and stored."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())


class LogBatch(Message, frozen=True, kw_only=True):
    lines: tuple[LogLine, ...]


class EventKind(StrEnum):
    """Which kind of thing happened."""

    SCALED = "function.scaled"
    """Another number of containers is wanted."""
    DECIDED = "container.decided"
    """One is moved, parked or ended."""
    NODE_LOST = "node.lost"
    BREAKER_OPENED = "breaker.opened"
    BREAKER_CLOSED = "breaker.closed"
    SLOWED = "flow.slowed"
    """Others take the slots of a function that a tenant shares with them."""
    RECOVERED = "flow.recovered"
    SHED = "calls.shed"
    """Queued calls gave way to higher tiers."""
    BUDGET_SPENT = "budget.spent"
    BUDGET_FREE = "budget.free"
    SLO_BROKEN = "slo.broken"
    """Too many calls of a function come later than its `slo=` says."""
    SLO_KEPT = "slo.kept"
    ROLLOUT_STARTED = "rollout.started"
    ROLLOUT_STEP = "rollout.step"
    ROLLOUT_HELD = "rollout.held"
    ROLLOUT_PROMOTED = "rollout.promoted"
    ROLLOUT_ROLLED_BACK = "rollout.rolled_back"
    ROLLOUT_SUPERSEDED = "rollout.superseded"
    POLICY_FOUND = "policy.found"
    """A policy objects to a version that runs, as it did not before."""


class PlatformEvent(Message, frozen=True, kw_only=True):
    """One of them. A tenant sees what names it, without `facts` that are for operators."""

    at: float
    """Unix seconds."""
    kind: Annotated[str, Meta(max_length=KIND_LENGTH)]
    """An `EventKind`; a newer release may know more."""
    tenant: str = ""
    """Whom it concerns; "": the platform, and operators alone see it."""
    function: str = ""
    """`tenant:app.function`."""
    says: Annotated[str, Meta(max_length=SENTENCE_LENGTH)]
    """In a sentence that names no other tenant."""
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    operator: dict[str, Any] = msgspec.field(default_factory=dict)
    """Facts that name others or nodes."""


class ComparedCalls(Message, frozen=True, kw_only=True):
    """Calls of one app, in the order in which they ended at one gateway."""

    tenant: ShortText
    app: ShortText
    gateway: ShortText
    calls: Annotated[tuple[ComparedCall, ...], Meta(max_length=MOST_COMPARED)]
