"""What becomes of a request with a key, given what is remembered of it. Plain functions.

A call runs twice only where its function is declared idempotent, or where the first provably never reached a container.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotlight_core.model.errors import BadInput, Conflict, NotFound, PilotlightError, UnknownCall
from pilotlight_gateway.idempotency.key_record import FirstCall, FirstCallState, StoredAnswer, StoredFirstCall

HEADER = "Idempotency-Key"
SHORTEST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
NOT_TAKEN = frozenset({"queue_full", "rate_limited", "no_capacity", "breaker_open", "starting", "load_failed"})
"""Errors of calls that no container began, or whose every start ended by raising, where `retries=` allows another."""
LOST_ON_THE_WAY = frozenset({"container_died", "overloaded", "internal", "deadline_exceeded", "draining"})
"""Errors after which an idempotent function may be asked again; of any other they are the call's last word."""


class ClaimKey(msgspec.Struct, frozen=True):
    """Run it, if the record still has `revision` (0: there is none)."""

    revision: int


class ReplayAnswer(msgspec.Struct, frozen=True):
    """Answer as the first time."""

    call_id: str
    answer: StoredAnswer


class RefuseKey(msgspec.Struct, frozen=True):
    """Say no."""

    error: PilotlightError
    call_id: str


class KeyBusy(msgspec.Struct, frozen=True):
    """The first call runs still, as far as the record says: its owner has to be looked for."""

    first: FirstCall
    revision: int


KeyDecision = ClaimKey | ReplayAnswer | RefuseKey | KeyBusy


class FailureRetention(StrEnum):
    """What is to be remembered of a call that failed."""

    KEEP = "keep"  # the error is its answer
    FORGET = "forget"  # it may be sent again under the same key


def decide(found: StoredFirstCall | None, fingerprint: bytes) -> KeyDecision:
    """What a request has to do with the record of its key."""
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
    """The same where the first call's gateway is gone, or its time is long over. It may have run, or may run yet."""
    return ClaimKey(busy.revision) if idempotent else RefuseKey(_lost(busy.first), busy.first.call_id)


def is_over(first: FirstCall, at: float) -> bool:
    """Whether the call has ended by `at` (unix seconds), though its record does not say so."""
    return at > first.ends_at


def fate_of(error: PilotlightError, *, idempotent: bool) -> FailureRetention:
    """What is remembered of a call that failed so."""
    code = error.wire_code
    again = code in NOT_TAKEN or (idempotent and code in LOST_ON_THE_WAY)
    return FailureRetention.FORGET if again else FailureRetention.KEEP


def in_use(first: FirstCall, at: float) -> Conflict:
    """The refusal of a request whose first runs still at `at` (unix seconds).

    How long that will take is not known; what has lasted t lasts about t more. A second at least, a minute at most,
    and no longer than the call may take.
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
