"""A tenant's room for keys is one for all gateways, and outlives them."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.bus import BusDown
from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from pilotlight_gateway.storage_quota.quota_lease import StorageQuota
from pilotlight_gateway.storage_quota.quota_shares import SLOTS, SMALLEST_BLOCK, slot_of

LIFE = 86_400.0
LIMIT = 4 * SMALLEST_BLOCK


class Wall:
    """Unix seconds that a test moves."""

    def __init__(self) -> None:
        self.at = 1e9

    def __call__(self) -> float:
        return self.at

    @property
    def slot(self) -> int:
        return slot_of(self.at, LIFE)


def rooms(count: int) -> tuple[MemoryQuotaRecords, Wall, list[StorageQuota]]:
    """Gateways over the same records."""
    records, wall = MemoryQuotaRecords(), Wall()
    return records, wall, [StorageQuota(records, limit=LIMIT, life=LIFE, wall=wall) for _ in range(count)]


async def fill(room: StorageQuota, tenant: str = "acme", size: int = 400) -> int:
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
    anew = StorageQuota(records, limit=LIMIT, life=LIFE, wall=wall)

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
    slots = [await room.take("acme", 400) for _ in range(40)]
    assert records.writes == 1

    room.give_back("acme", 400, slots[0])
    await room.take("acme", 400)
    assert records.writes == 1


async def test_many_at_once_take_one_block() -> None:
    """Those who come while one is being taken spend of it."""
    records, _, (room,) = rooms(1)
    await asyncio.gather(*(room.take("acme", 400) for _ in range(40)))

    assert records.writes == 1


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


@pytest.mark.parametrize("lives", [0.01, 3.0])
async def test_what_lives_shorter_or_longer_counts_for_so_long(lives: float) -> None:
    """Sooner or later than a life; over a restart as well."""
    records, wall, (room,) = rooms(1)
    await room.take("acme", LIMIT, wall.at + lives * LIFE)
    room = StorageQuota(records, limit=LIMIT, life=LIFE, wall=wall)
    wall.at += lives * LIFE
    with pytest.raises(TooMuch) as refused:
        await room.take("acme", LIMIT)

    assert refused.value.retry_after is not None
    assert refused.value.retry_after <= 2 * LIFE / SLOTS
    wall.at += refused.value.retry_after
    await room.take("acme", LIMIT)


async def test_what_was_given_back_is_spent_in_its_slot() -> None:
    """Not by what lives longer: that would be counted no more while it is there."""
    _, wall, (room,) = rooms(1)
    slot = await room.take("acme", LIMIT, wall.at + 0.1 * LIFE)
    room.give_back("acme", LIMIT, slot)

    with pytest.raises(TooMuch):
        await room.take("acme", 400)
    await room.take("acme", LIMIT, wall.at + 0.1 * LIFE)


async def test_what_is_stored_already_is_counted_beyond_the_limit() -> None:
    """Each gateway sees it, and nothing new is let in until it has expired."""
    _, wall, (room, other) = rooms(2)
    assert await room.count("acme", 400) == (wall.slot, True)
    assert await room.count("acme", 2 * LIMIT) == (wall.slot, False)

    assert await other.is_full("acme")
    assert not await other.is_full("rival")
    with pytest.raises(TooMuch):
        await other.take("acme", 1)
    wall.at += LIFE * (1 + 2 / SLOTS)
    assert not await other.is_full("acme")
    assert await other.count("acme", 1) == (wall.slot, True)


async def test_what_is_counted_while_the_bus_is_away_is_written_later() -> None:
    """With whatever comes next."""
    records, wall, (room, other) = rooms(2)
    records.error = BusDown("gone")
    assert await room.count("acme", LIMIT) == (wall.slot, False)
    records.error = None
    with pytest.raises(TooMuch):
        await room.take("acme", 400)
    assert await other.is_full("acme")


async def test_a_part_may_be_kept_for_others() -> None:
    """Who may take no more than a part of it leaves the rest."""
    _, _, (room,) = rooms(1)
    await room.take("acme", LIMIT // 2, part=0.5)
    with pytest.raises(TooMuch):
        await room.take("acme", LIMIT // 4, part=0.5)
    await room.take("acme", LIMIT // 4)
