"""A tenant's room for keys is one for all gateways, and outlives them."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.host.bus import BusDown
from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.idempotency.memory import MemoryRecords
from pilotlight_gateway.idempotency.room import Room
from pilotlight_gateway.idempotency.shares import SLOTS, SMALLEST_BLOCK

LIFE = 86_400.0
LIMIT = 4 * SMALLEST_BLOCK


class Wall:
    """Unix seconds that a test moves."""

    def __init__(self) -> None:
        self.at = 1e9

    def __call__(self) -> float:
        return self.at


def rooms(count: int) -> tuple[MemoryRecords, Wall, list[Room]]:
    """Gateways over the same records."""
    records, wall = MemoryRecords(), Wall()
    return records, wall, [Room(records, limit=LIMIT, life=LIFE, wall=wall) for _ in range(count)]


async def fill(room: Room, tenant: str = "acme", size: int = 400) -> int:
    """Take until there is no more; how many bytes that was."""
    taken = 0
    while True:
        try:
            await room.take(tenant, size)
        except TooMuch:
            return taken
        taken += size


async def test_several_gateways_have_one_share_for_a_tenant() -> None:
    """Together they take what one could; so does a gateway that is started anew, and no other tenant is touched."""
    records, wall, made = rooms(3)
    taken = [await fill(room) for room in made]
    anew = Room(records, limit=LIMIT, life=LIFE, wall=wall)

    assert sum(taken) <= LIMIT
    assert await fill(anew) == 0
    assert await fill(anew, "rival") > 0.9 * LIMIT


async def test_the_refusal_says_what_is_full_and_when_it_is_not() -> None:
    """After that long there is room."""
    _, wall, (room,) = rooms(1)
    await fill(room)

    with pytest.raises(TooMuch, match="in 24 h, over all gateways") as refused:
        await room.take("acme", 400)

    assert refused.value.retry_after is not None
    assert LIFE <= refused.value.retry_after <= LIFE * (1 + 2 / SLOTS)
    wall.at += refused.value.retry_after
    await room.take("acme", 400)


async def test_few_keys_cost_a_write_more() -> None:
    """A block is spent in memory, and what was given back is spent again."""
    records, _, (room,) = rooms(1)
    for _ in range(40):
        await room.take("acme", 400)
    assert records.blocks == 1

    room.give_back("acme", 400)
    await room.take("acme", 400)
    assert records.blocks == 1


async def test_many_at_once_take_one_block() -> None:
    """Those who come while one is being taken spend of it."""
    records, _, (room,) = rooms(1)
    await asyncio.gather(*(room.take("acme", 400) for _ in range(40)))

    assert records.blocks == 1


async def test_what_could_not_be_asked_for_is_taken_later() -> None:
    """While the bus is away nothing is known; a debt outlives its slot."""
    records, wall, (room,) = rooms(1)
    records.error = BusDown("gone")
    with pytest.raises(BusDown):
        await room.take("acme", 400)
    room.owe("acme", LIMIT - 400)
    wall.at += LIFE / SLOTS
    records.error = None

    await room.take("acme", 400)
    with pytest.raises(TooMuch):
        await room.take("acme", 400)
