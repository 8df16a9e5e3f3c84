"""How much of a storage quota each tenant takes, over all gateways. Plain functions over values.

The bucket refuses what it has no room for; a quota keeps one tenant from taking all of it. A tenant's record in the
bucket counts bytes by slot, the part of a life in which they were taken. Gateways take blocks by compare-and-set and
spend them in memory. What is left of a block is void with its slot, so a block is at most what the slot took before.

Bytes are never counted off: a slot counts until the last of it has expired. What lives shorter or longer than a life
counts in the slot in which it would have to be written to expire when it does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import msgspec

SLOTS = 24
"""Parts of a key's life in which bytes are counted together: what has expired is known to 1/24 of that."""
RECORD_BYTES = 400
"""A record without an answer, with what the server keeps around it."""
SMALLEST_BLOCK = 16 * 1024
LARGEST_BLOCK = 2**20
BLOCKS_AT_LEAST = 256
"""Of a large share, so that its blocks are larger: requests wait while one is taken."""


class QuotaUsage(msgspec.Struct, frozen=True, array_like=True):
    """What one tenant has taken of its share."""

    slots: dict[int, int] = {}
    """slot -> bytes"""


NOTHING = QuotaUsage()


def quota_key(tenant: str) -> str:
    """Where a tenant's record is, beside those of keys."""
    return "share-" + hashlib.sha256(tenant.encode()).hexdigest()[:40]


def slot_of(at: float, life: float) -> int:
    """The slot of an instant (unix seconds), where keys live for `life` seconds."""
    return math.floor(at / life * SLOTS)


def slot_until(expires_at: float, life: float) -> int:
    """The slot of what expires at an instant (unix seconds), whenever it is written."""
    return slot_of(expires_at, life) - SLOTS  # however it is rounded, nothing expires later than it counts


def used(taken: QuotaUsage, slot: int) -> int:
    """Bytes that count in `slot`: what was written in the oldest of these may live still."""
    return sum(size for then, size in taken.slots.items() if then >= slot - SLOTS)


def block_of(taken: QuotaUsage, slot: int, size: int, limit: int, into: int | None = None) -> int:
    """How much a gateway takes that needs `size` bytes now, in the slot `into` (or this one); 0: there is no room."""
    room = limit - used(taken, slot)
    if size > room:
        return 0
    largest = max(LARGEST_BLOCK, limit // BLOCKS_AT_LEAST)
    return min(room, max(size, SMALLEST_BLOCK, min(largest, taken.slots.get(slot if into is None else into, 0))))


def with_blocks(taken: QuotaUsage, slot: int, blocks: Mapping[int, int]) -> QuotaUsage:
    """What is taken with further bytes by slot; what counts no more at `slot` is left out."""
    slots = dict(taken.slots)
    for then, size in blocks.items():
        slots[then] = slots.get(then, 0) + size
    return QuotaUsage({then: size for then, size in slots.items() if then >= slot - SLOTS})


def seconds_until_free(taken: QuotaUsage, size: int, limit: int, at: float, life: float) -> float:
    """Seconds after which `size` bytes fit, if nothing more is written meanwhile; never more than a life and a slot."""
    over = used(taken, slot_of(at, life)) + size - limit
    until = at
    for slot in sorted(slot for slot in taken.slots if slot >= slot_of(at, life) - SLOTS):
        if over <= 0:
            break
        over -= taken.slots[slot]
        until = (slot + SLOTS + 1) * life / SLOTS
    return until - at
