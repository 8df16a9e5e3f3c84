"""Takes and spends blocks of tenants' storage quotas for one gateway."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

from pilotlight_core.bus import BusError, KeyConflict, retry_conflicts
from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.storage_quota.quota_port import QuotaRecords
from pilotlight_gateway.storage_quota.quota_shares import (
    NOTHING,
    SLOTS,
    QuotaUsage,
    block_of,
    quota_key,
    seconds_until_free,
    slot_of,
    slot_until,
    used,
    with_blocks,
)

LINES = 64
"""Locks; tenants with different ones take blocks concurrently."""


class StorageQuota:
    """Bytes that this gateway has taken for tenants and not spent.

    `expires_at` is the unix second at which stored bytes expire (default: after one `life`). Spent bytes count in a
    slot, which `give_back` needs.
    """

    def __init__(self, records: QuotaRecords, *, limit: int, life: float, wall: Callable[[], float]) -> None:
        self._records = records
        self._limit = limit
        self._life = life
        self._wall = wall
        self._slot = 0
        self._left: dict[tuple[str, int], int] = {}
        """By (tenant, slot), bytes taken and not spent."""
        self._debts: dict[str, Counter[int]] = {}
        """By tenant and slot, bytes spent before they were taken."""
        self._lines = tuple(asyncio.Lock() for _ in range(LINES))

    async def take(self, tenant: str, size: int, expires_at: float | None = None, *, part: float = 1.0) -> int:
        """Spend `size` bytes, up to `part` of the tenant's quota in all; returns their slot.

        Raises:
            TooMuch: the quota is used up; `retry_after` is in seconds.
            BusError: the record cannot be read or written.
        """
        if (slot := self.spend(tenant, size, expires_at)) is not None:
            return slot

        async def attempt() -> int:
            if (slot := self.spend(tenant, size, expires_at)) is None:
                await self._take_block(tenant, size, self._slot_until(expires_at), int(self._limit * part))
                slot = self.spend(tenant, size, expires_at)
            if slot is None:
                raise KeyConflict("Its slot has passed since it was taken.")
            return slot

        busy = BusError("Other gateways were first again and again to write what a tenant's keys take.")
        async with self._lines[hash(tenant) % LINES]:
            return await retry_conflicts(attempt, failed=busy)

    async def count(
        self, tenant: str, size: int, expires_at: float | None = None, *, part: float = 1.0
    ) -> tuple[int, bool]:
        """Spend `size` bytes in any case; returns their slot, and whether usage is within `part` of the quota."""
        try:
            return await self.take(tenant, size, expires_at, part=part), True
        except (TooMuch, BusError):
            slot = self.owe(tenant, size, expires_at)

        async def attempt() -> None:
            if tenant in self._debts:  # unless a concurrent call has written it
                await self._write(tenant, *await self._read(tenant), {})

        with contextlib.suppress(BusError, KeyConflict):
            async with self._lines[hash(tenant) % LINES]:
                await retry_conflicts(attempt)
        return slot, False

    async def is_full(self, tenant: str, *, part: float = 1.0) -> bool:
        """Whether `part` of a tenant's quota is taken. Raises BusError."""
        taken, _ = await self._read(tenant)
        return used(taken, self._now()) >= int(self._limit * part)

    def owe(self, tenant: str, size: int, expires_at: float | None = None) -> int:
        """Spend `size` bytes, which the next block takes; returns their slot."""
        slot = self._slot_until(expires_at)
        self._debts.setdefault(tenant, Counter())[slot] += size
        return slot

    def give_back(self, tenant: str, size: int, slot: int) -> None:
        """Return `size` bytes of a slot."""
        self._left[tenant, slot] = self._left.get((tenant, slot), 0) + size

    def spend(self, tenant: str, size: int, expires_at: float | None = None) -> int | None:
        """Spend `size` bytes of present blocks; returns their slot, or None if these do not suffice."""
        self._now()
        place = tenant, self._slot_until(expires_at)
        left = self._left.get(place, 0)
        if left < size:
            return None
        self._left[place] = left - size
        return place[1]

    def _now(self) -> int:
        """Blocks become void when the slot changes."""
        slot = slot_of(self._wall(), self._life)
        if slot != self._slot:
            self._slot, self._left = slot, {}
        return slot

    def _slot_until(self, expires_at: float | None) -> int:
        return slot_of(self._wall(), self._life) if expires_at is None else slot_until(expires_at, self._life)

    async def _read(self, tenant: str) -> tuple[QuotaUsage, int]:
        return await self._records.read_share(quota_key(tenant)) or (NOTHING, 0)

    async def _take_block(self, tenant: str, size: int, into: int, limit: int) -> None:
        at, slot = self._wall(), self._now()
        taken, revision = await self._read(tenant)
        owed = with_blocks(taken, slot, self._debts.get(tenant, {}))
        need = size - self._left.get((tenant, into), 0)
        block = block_of(owed, slot, need, limit, into)
        if block or tenant in self._debts:
            await self._write(tenant, taken, revision, {into: block})
        if not block:
            raise TooMuch(
                f"The room for the tenant's idempotency keys is used up: {self._limit / 2**20:g} MiB in "
                f"{self._life / 3600:g} h, over all gateways.",
                retry_after=seconds_until_free(owed, need, limit, at, self._life),
            )

    async def _write(self, tenant: str, taken: QuotaUsage, revision: int, blocks: dict[int, int]) -> None:
        """Write debts, and new blocks by slot.

        Raises:
            KeyConflict: another gateway was first; nothing has changed.
        """
        slot, debts = self._slot, Counter(self._debts.get(tenant, {}))
        more = with_blocks(taken, slot, debts + Counter(blocks))
        # The record outlives the bytes that it counts, by a slot, which is the precision of their age.
        ttl = max(1.1, (max(more.slots, default=slot) - slot + SLOTS + 2) / SLOTS) * self._life
        await self._records.write_share(quota_key(tenant), more, revision, ttl)
        if unpaid := self._debts.pop(tenant, Counter()) - debts:
            self._debts[tenant] = unpaid
        if slot == self._slot:  # else the blocks are void: bytes written now outlive what they count
            for into, size in blocks.items():
                self.give_back(tenant, size, into)
