"""What is remembered of the first call with an idempotency key, and how that changes. Plain functions over values.

                  claim                     the call ended
      (nothing) ────────▶ RUNNING ──────────────────────────────▶ DONE
          ▲                 │  ▲
          │                 │  └── claimed anew: VOID, or its gateway is gone and the function is idempotent
          └── expires ── VOID ◀─┘ the call provably never reached a container

Every change is a compare-and-set on the record, so of all gateways that want one, one has it. A call is begun only by
the gateway whose claim was confirmed, and by nobody else while the record stands.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

KEPT_BYTES = 256 * 1024
"""Of one answer; a longer one is remembered as ended, without its body."""
GRACE_S = 60.0
"""Beyond its deadline a call is surely over, whatever two gateways' clocks say."""
PLACE_DIGITS = 40


class FirstCallState(StrEnum):
    """How the first call is."""

    RUNNING = "running"  # it was begun, and may have started
    DONE = "done"  # it has ended, well or badly
    VOID = "void"  # it never reached a container: the key is as good as new


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer as it is repeated."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class CallOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The process that runs a call: a gateway's name, and which of its incarnations."""

    name: str
    instance: str


class FirstCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a key."""

    fingerprint: bytes
    call_id: str = msgspec.field(name="call")
    """The call's, which names the epoch of the gateway that runs it."""
    owner: CallOwner
    began_at: float = msgspec.field(name="began")
    """Unix seconds, as the other times."""
    ends_at: float = msgspec.field(name="until")
    """When it is over at the latest."""
    stage: FirstCallState = FirstCallState.RUNNING
    status: int = 0
    """Of its answer."""
    answer: StoredAnswer | None = None
    """None in DONE: it was too large to keep."""


class StoredFirstCall(msgspec.Struct, frozen=True):
    """A record as it stands, and the revision that wrote it. `first` None: somebody deleted it."""

    first: FirstCall | None
    revision: int


def place_of(tenant: str, key: str) -> str:
    """Where the record of a tenant's key is: no tenant can guess another's."""
    return hashlib.sha256(f"{tenant}\0{key}".encode()).hexdigest()[:PLACE_DIGITS]


def fingerprint_of(ref: str, method: str, accepts: bytes, arguments: bytes) -> bytes:
    """What two requests must share to be the same: function, method, form of the answer, and arguments as msgpack."""
    said = hashlib.sha256()
    for part in (ref.encode(), method.encode(), accepts, arguments):
        said.update(len(part).to_bytes(8, "big"))
        said.update(part)
    return said.digest()


def begun(fingerprint: bytes, call_id: str, owner: CallOwner, *, at: float, timeout_s: float) -> FirstCall:
    """A call that begins at `at` and ends within `timeout_s` seconds."""
    return FirstCall(
        fingerprint=fingerprint, call_id=call_id, owner=owner, began_at=at, ends_at=at + timeout_s + GRACE_S
    )


def ended(first: FirstCall, answer: StoredAnswer, *, keep: bool = True) -> FirstCall:
    """Its answer is known. `keep` False: there is no room for the body."""
    kept = answer if keep and len(answer.body) <= KEPT_BYTES else None
    return msgspec.structs.replace(first, stage=FirstCallState.DONE, status=answer.status, answer=kept)


def voided(first: FirstCall) -> FirstCall:
    """It never reached a container."""
    return msgspec.structs.replace(first, stage=FirstCallState.VOID)
