"""The arithmetic of a storage quota that gateways share. Plain functions.

A quota keeps one tenant from filling the bucket. A tenant's record counts bytes by slot, the part of a life in which
they were taken. Gateways take blocks by compare-and-set and spend them in memory. Blocks become void with their slot,
so one is no larger than what its slot took before.

Bytes are never subtracted: a slot counts until its last byte has expired. Bytes with another life count in the slot
whose bytes expire when they do.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import msgspec

SLOTS = 24
"""Slots per life: expiry is known to 1/24 of a life."""
RECORD_BYTES = 400
"""A record without an answer, including the server's overhead."""
SMALLEST_BLOCK = 16 * 1024
LARGEST_BLOCK = 2**20
BLOCKS_AT_LEAST = 256
"""Blocks of a large quota exceed LARGEST_BLOCK, since requests wait while one is taken."""


class QuotaUsage(msgspec.Struct, frozen=True, array_like=True):
    """Bytes that one tenant has taken of its quota."""

    slots: dict[int, int] = {}
    """Bytes by slot."""


NOTHING = QuotaUsage()


def quota_key(tenant: str) -> str:
    """The key of a tenant's record."""
    return "share-" + hashlib.sha256(tenant.encode()).hexdigest()[:40]


def slot_of(at: float, life: float) -> int:
    """The slot of the unix second `at`, for a life in seconds."""
    return math.floor(at / life * SLOTS)


def slot_until(expires_at: float, life: float) -> int:
    """The slot of bytes that expire at a unix second."""
    return slot_of(expires_at, life) - SLOTS  # whatever the rounding, they count at least until they expire


def used(taken: QuotaUsage, slot: int) -> int:
    """Bytes that count in `slot`: any that may not have expired."""
    return sum(size for then, size in taken.slots.items() if then >= slot - SLOTS)


def block_of(taken: QuotaUsage, slot: int, size: int, limit: int, into: int | None = None) -> int:
    """The size of the block to take for `size` bytes in the slot `into` (default: `slot`); 0 if they do not fit."""
    room = limit - used(taken, slot)
    if size > room:
        return 0
    largest = max(LARGEST_BLOCK, limit // BLOCKS_AT_LEAST)
    return min(room, max(size, SMALLEST_BLOCK, min(largest, taken.slots.get(slot if into is None else into, 0))))


def with_blocks(taken: QuotaUsage, slot: int, blocks: Mapping[int, int]) -> QuotaUsage:
    """`taken` plus bytes by slot, less what has expired at `slot`."""
    slots = dict(taken.slots)
    for then, size in blocks.items():
        slots[then] = slots.get(then, 0) + size
    return QuotaUsage({then: size for then, size in slots.items() if then >= slot - SLOTS})


def seconds_until_free(taken: QuotaUsage, size: int, limit: int, at: float, life: float) -> float:
    """Seconds until `size` bytes fit if no more are written; at most a life and a slot."""
    over = used(taken, slot_of(at, life)) + size - limit
    until = at
    for slot in sorted(slot for slot in taken.slots if slot >= slot_of(at, life) - SLOTS):
        if over <= 0:
            break
        over -= taken.slots[slot]
        until = (slot + SLOTS + 1) * life / SLOTS
    return until - at
