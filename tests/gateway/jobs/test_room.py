"""What a tenant may store of jobs, and that nothing is started of one who is over it."""

from __future__ import annotations

import pytest

from pilotlight_core.host.bus import BusDown
from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.jobs.memory import MemoryJobs
from pilotlight_gateway.jobs.room import ASK_AGAIN_S, ASKING_S, JobRoom

LIFE = 2_400.0
LIMIT = 100_000


class Site:
    """Gateways over one store, and their clock."""

    def __init__(self) -> None:
        self.at = 1e6
        self.store = MemoryJobs()

    def gateway(self) -> JobRoom:
        return JobRoom(self.store, limit=LIMIT, life=LIFE, wall=lambda: self.at)


async def test_the_last_tenth_is_for_results() -> None:
    """What is submitted leaves it; whatever is given back can be submitted again."""
    site = Site()
    room = site.gateway()
    counted = await room.take("acme", 90_000, site.at + LIFE)
    with pytest.raises(TooMuch, match="room for jobs is used up"):
        await room.take("acme", 1_000, site.at + LIFE)
    assert await room.fits("acme", 5_000, site.at + LIFE)
    assert (await room.count("acme", 5_000, site.at + LIFE))[1]
    assert not await room.fits("acme", 1, site.at + LIFE)

    room.give_back(counted)
    assert room.spend("acme", 90_000, site.at + LIFE) == counted


async def test_a_tenant_over_its_share_has_nothing_started() -> None:
    """Until what it stored is forgotten; no other tenant waits, and no gateway asks all the time."""
    site = Site()
    room = site.gateway()
    assert await room.pause("acme") == 0.0
    assert not (await room.count("acme", LIMIT + 1, site.at + 60.0))[1]

    assert await room.pause("acme") == ASK_AGAIN_S
    assert await room.pause("rival") == 0.0
    site.store.error = BusDown("gone")
    site.at += 0.25 * ASK_AGAIN_S
    assert await room.pause("acme") == 0.75 * ASK_AGAIN_S  # nobody was asked
    site.at += ASK_AGAIN_S
    assert await room.pause("acme") == ASKING_S
    site.store.error = None
    site.at += LIFE
    assert await room.pause("acme") == 0.0


async def test_a_bus_that_is_away_starts_nothing_and_is_asked_again() -> None:
    """A result that came then is counted once it is back."""
    site = Site()
    room = site.gateway()
    site.store.error = BusDown("gone")
    assert not (await room.count("acme", 10_000, site.at + LIFE))[1]
    site.store.error = None
    assert await room.pause("acme") == 0.0
    with pytest.raises(TooMuch):
        await room.take("acme", 85_000, site.at + LIFE)
