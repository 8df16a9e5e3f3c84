"""The room for keys as one gateway takes and spends it; see `shares`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilotlight_core.host.bus import BusError, KeyConflict
from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.idempotency.port import ShareRecords
from pilotlight_gateway.idempotency.shares import (
    NOTHING,
    block_of,
    place_of_share,
    seconds_until_room,
    slot_of,
    with_block,
)

LINES = 64
"""Tenants that ask for a block at the same time without waiting for each other."""
COLLISIONS = 16
"""Times that other gateways may take a block first; then whoever asks hears that the bus is busy."""


class Room:
    """What this gateway has taken for each tenant and not spent yet."""

    def __init__(self, records: ShareRecords, *, limit: int, life: float, wall: Callable[[], float]) -> None:
        self._records = records
        self._limit = limit
        self._life = life
        self._wall = wall
        self._slot = 0
        self._left: dict[str, int] = {}
        """tenant -> bytes, of the present slot; below 0: spent without having been taken."""
        self._lines = tuple(asyncio.Lock() for _ in range(LINES))

    async def take(self, tenant: str, size: int) -> None:
        """Spend `size` bytes of a tenant's share.

        Raises:
            TooMuch: there is no room; `retry_after` says when there will be.
            BusError: nobody can say.
        """
        if self.spend(tenant, size):
            return
        async with self._lines[hash(tenant) % LINES]:
            for _ in range(COLLISIONS):
                if self.spend(tenant, size):
                    return
                await self._take_block(tenant, size)
        raise BusError(f"Other gateways were first {COLLISIONS} times to write what a tenant's keys take.")

    def owe(self, tenant: str, size: int) -> None:
        """Spend `size` bytes that nobody can be asked for now: they are taken together with the next ones."""
        self.spend(tenant, 0)
        self._left[tenant] = self._left.get(tenant, 0) - size

    def give_back(self, tenant: str, size: int) -> None:
        """What was taken was not written after all."""
        self._left[tenant] = self._left.get(tenant, 0) + size

    def spend(self, tenant: str, size: int) -> bool:
        """Spend `size` bytes of what was taken already; False: that is not enough, see `take`."""
        slot = slot_of(self._wall(), self._life)
        if slot != self._slot:
            self._slot, self._left = slot, {t: left for t, left in self._left.items() if left < 0}
        left = self._left.get(tenant, 0)
        if left < size:
            return False
        self._left[tenant] = left - size
        return True

    async def _take_block(self, tenant: str, size: int) -> None:
        place, slot, at = place_of_share(tenant), self._slot, self._wall()
        taken, revision = await self._records.read_share(place) or (NOTHING, 0)
        need = size - self._left.get(tenant, 0)
        block = block_of(taken, slot, need, self._limit)
        if not block:
            raise TooMuch(
                f"The room for the tenant's idempotency keys is used up: {self._limit / 2**20:g} MiB in "
                f"{self._life / 3600:g} h, over all gateways.",
                retry_after=seconds_until_room(taken, need, self._limit, at, self._life),
            )
        try:
            more = with_block(taken, slot, block)
            # A share outlives what was written on it: by a slot, since that is as exact as it knows when that was.
            await self._records.write_share(place, more, revision, self._life * 1.1)
        except KeyConflict:
            return
        if slot == self._slot:  # else it is void: what is written now lives longer than this block counts
            self._left[tenant] = self._left.get(tenant, 0) + block
