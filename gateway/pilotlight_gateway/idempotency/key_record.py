"""The record of an idempotency key, and its changes. Plain functions.

                  claim                     the call ended
      (nothing) ────────▶ RUNNING ──────────────────────────────▶ DONE
          ▲                 │  ▲
          │                 │  └── claimed again: VOID, or its gateway is gone and the function is idempotent
          └── expires ── VOID ◀─┘ the call provably never reached a container

Every change is a compare-and-set, so one gateway alone succeeds. Only the gateway whose claim was confirmed begins the
call, and no other does while the record exists.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

KEPT_BYTES = 256 * 1024
"""Limit of an answer; a longer one is recorded without its body."""
GRACE_S = 60.0
"""Added to the deadline, for differences between clocks."""
PLACE_DIGITS = 40


class FirstCallState(StrEnum):
    """The state of a key's first call."""

    RUNNING = "running"  # begun, and perhaps started
    DONE = "done"  # ended, well or badly
    VOID = "void"  # never reached a container: the key can be claimed again


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer to repeat."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class CallOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The process that runs a call: a gateway's name and incarnation."""

    name: str
    instance: str


class FirstCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a key. Instants are unix seconds."""

    tenant: str = ""
    """Whose key it is; "": of releases before, which did not say."""
    fingerprint: bytes
    call_id: str = msgspec.field(name="call")
    """Names the epoch of the gateway that runs the call."""
    owner: CallOwner
    began_at: float = msgspec.field(name="began")
    ends_at: float = msgspec.field(name="until")
    """The latest instant at which the call is over."""
    stage: FirstCallState = FirstCallState.RUNNING
    status: int = 0
    """Of the HTTP answer."""
    answer: StoredAnswer | None = None
    """None in DONE: too large to keep."""


class StoredFirstCall(msgspec.Struct, frozen=True):
    """A record and its revision; `first` is None if it was deleted."""

    first: FirstCall | None
    revision: int


def place_of(tenant: str, key: str) -> str:
    """The record's key: a hash, so that no tenant can guess another's."""
    return hashlib.sha256(f"{tenant}\0{key}".encode()).hexdigest()[:PLACE_DIGITS]


def fingerprint_of(ref: str, method: str, accepts: bytes, arguments: bytes) -> bytes:
    """Equal for requests with the same function, method, form of answer, and arguments (msgpack)."""
    said = hashlib.sha256()
    for part in (ref.encode(), method.encode(), accepts, arguments):
        said.update(len(part).to_bytes(8, "big"))
        said.update(part)
    return said.digest()


def begun(
    fingerprint: bytes, call_id: str, owner: CallOwner, *, at: float, timeout_s: float, tenant: str = ""
) -> FirstCall:
    """The record of a call that begins at `at` and ends within `timeout_s` seconds."""
    ends_at = at + timeout_s + GRACE_S
    return FirstCall(tenant=tenant, fingerprint=fingerprint, call_id=call_id, owner=owner, began_at=at, ends_at=ends_at)


def ended(first: FirstCall, answer: StoredAnswer, *, keep: bool = True) -> FirstCall:
    """The record with its answer, without the body if `keep` is False or it is too large."""
    kept = answer if keep and len(answer.body) <= KEPT_BYTES else None
    return msgspec.structs.replace(first, stage=FirstCallState.DONE, status=answer.status, answer=kept)


def voided(first: FirstCall) -> FirstCall:
    return msgspec.structs.replace(first, stage=FirstCallState.VOID)
