"""Decides about a request with a key, given the key's record. Plain functions.

A call runs twice only if its function is idempotent, or the first provably never reached a container.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotlight_core.model.errors import BadInput, Conflict, NotFound, PilotlightError, UnknownCall
from pilotlight_gateway.idempotency.key_record import FirstCall, FirstCallState, StoredAnswer, StoredFirstCall

HEADER = "Idempotency-Key"
SHORTEST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
NOT_TAKEN = frozenset(
    {
        "queue_full", "rate_limited", "budget_exhausted", "no_capacity", "breaker_open", "starting", "load_failed",
        "misconfigured",
    }
)  # fmt: skip
"""Errors of calls that reached no container, or whose starts all failed: safe to repeat."""
LOST_ON_THE_WAY = frozenset({"container_died", "preempted", "overloaded", "internal", "deadline_exceeded", "draining"})
"""Errors after which an idempotent function may run again. Other errors are the call's answer."""


class ClaimKey(msgspec.Struct, frozen=True):
    """Run the request, if the record still has `revision` (0: none)."""

    revision: int


class ReplayAnswer(msgspec.Struct, frozen=True):
    """Repeat the first request's answer."""

    call_id: str
    answer: StoredAnswer


class RefuseKey(msgspec.Struct, frozen=True):
    """Refuse the request."""

    error: PilotlightError
    call_id: str


class KeyBusy(msgspec.Struct, frozen=True):
    """The first call runs, according to its record; its owner may be gone."""

    first: FirstCall
    revision: int


KeyDecision = ClaimKey | ReplayAnswer | RefuseKey | KeyBusy


class FailureRetention(StrEnum):
    """Whether the error of a failed call is stored."""

    KEEP = "keep"  # the error is the key's answer
    FORGET = "forget"  # the key may be used again


def decide(found: StoredFirstCall | None, fingerprint: bytes) -> KeyDecision:
    """The decision for a request with this fingerprint."""
    if found is None:
        return ClaimKey(0)
    first = found.first
    if first is None or first.stage is FirstCallState.VOID:
        return ClaimKey(found.revision)
    if first.fingerprint != fingerprint:
        return RefuseKey(_reused(), first.call_id)
    if first.stage is FirstCallState.RUNNING:
        return KeyBusy(first, found.revision)
    if first.answer is None:
        return RefuseKey(_not_kept(first), first.call_id)
    return ReplayAnswer(first.call_id, first.answer)


def decide_orphaned(busy: KeyBusy, *, idempotent: bool) -> ClaimKey | RefuseKey:
    """The decision when the first call's gateway is gone or its time over: it may have run, or still run."""
    return ClaimKey(busy.revision) if idempotent else RefuseKey(_lost(busy.first), busy.first.call_id)


def is_over(first: FirstCall, at: float) -> bool:
    """Whether the call is over by the unix second `at`, whatever its record says."""
    return at > first.ends_at


def fate_of(error: PilotlightError, *, idempotent: bool) -> FailureRetention:
    """Whether `error` becomes the answer of its key."""
    code = error.wire_code
    again = code in NOT_TAKEN or (idempotent and code in LOST_ON_THE_WAY)
    return FailureRetention.FORGET if again else FailureRetention.KEEP


def in_use(first: FirstCall, at: float) -> Conflict:
    """The refusal of a request whose first call runs at the unix second `at`.

    `retry_after` is the time that the call has run, since an unknown duration is expected to double: from 1 to 60
    seconds, and at most what remains of its deadline.
    """
    guess = min(max(at - first.began_at, SHORTEST_WAIT_S), LONGEST_WAIT_S, max(first.ends_at - at, SHORTEST_WAIT_S))
    return Conflict(
        f"The first call with this {HEADER} still runs.", code="idempotency_key_in_use", retry_after=guess,
        call_id=first.call_id,
    )  # fmt: skip


def _reused() -> BadInput:
    return BadInput(
        f"{HEADER}: it was used for another function, method, input or form of answer.",
        code="idempotency_key_reused", field=HEADER,
    )  # fmt: skip


def _not_kept(first: FirstCall) -> NotFound:
    return NotFound(
        f"The first call with this {HEADER} ended with status {first.status}; its answer was too large to keep.",
        code="answer_not_kept", call_id=first.call_id,
    )  # fmt: skip


def _lost(first: FirstCall) -> UnknownCall:
    return UnknownCall(
        f"The gateway of the first call with this {HEADER} is gone, and the call with it: whether it ran is not known. "
        "It runs again only under another key.",
        code="call_lost", call_id=first.call_id,
    )  # fmt: skip
