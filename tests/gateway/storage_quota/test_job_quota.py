"""What a tenant may store of jobs, and that nothing is started of one who is over it."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import BusDown
from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.storage_quota.job_quota import ASK_AGAIN_S, ASKING_S, RESULTS_AT_MOST, JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords

LIFE = 2_400.0
LIMIT = 100_000


class Site:
    """Gateways over the same records, and their clock."""

    def __init__(self) -> None:
        self.at = 1e6
        self.records = MemoryQuotaRecords()

    def gateway(self) -> JobStorageQuota:
        return JobStorageQuota(self.records, limit=LIMIT, life=LIFE, wall=lambda: self.at)


@pytest.fixture
def site() -> Site:
    return Site()


async def test_the_last_tenth_is_for_ends(site: Site) -> None:
    """What is submitted leaves it; whatever is given back can be submitted again."""
    room = site.gateway()
    counted = await room.take("acme", 90_000, site.at + LIFE)
    with pytest.raises(TooMuch, match="room for jobs is used up"):
        await room.take("acme", 1_000, site.at + LIFE)
    assert await room.fit("acme", 10_000, site.at + LIFE)
    assert await room.fit("acme", 1, site.at + LIFE) is None

    room.give_back(counted)
    assert room.spend("acme", 90_000, site.at + LIFE) == counted


async def test_results_may_take_more_and_keep_new_jobs_out(site: Site) -> None:
    """At every gateway, and until they are forgotten; what was accepted goes on."""
    room, other = site.gateway(), site.gateway()
    for _ in range(7):
        await room.count("acme", LIMIT, site.at + 60.0)
    assert await room.pause("acme") == 0.0
    assert await other.fit("acme", 1, site.at + 60.0) is None
    with pytest.raises(TooMuch):
        await other.take("acme", 1, site.at + LIFE)
    await other.take("rival", 1, site.at + LIFE)
    site.at += 60.0 + LIFE / 24
    await other.take("acme", 1, site.at + LIFE)


async def test_of_a_tenant_with_far_too_much_nothing_is_started(site: Site) -> None:
    """Until something is forgotten; no other tenant waits, and no gateway asks all the time."""
    room = site.gateway()
    assert await room.pause("acme") == 0.0
    await room.count("acme", int(RESULTS_AT_MOST * LIMIT) + 1, site.at + 60.0)

    assert await room.pause("acme") == ASK_AGAIN_S
    assert await room.pause("rival") == 0.0
    site.records.error = BusDown("gone")
    site.at += 0.25 * ASK_AGAIN_S
    assert await room.pause("acme") == 0.75 * ASK_AGAIN_S  # nobody was asked
    site.at += ASK_AGAIN_S
    assert await room.pause("acme") == ASKING_S
    site.records.error = None
    site.at += LIFE
    assert await room.pause("acme") == 0.0


async def test_a_result_that_comes_while_the_bus_is_away_is_counted_once_it_is_back(site: Site) -> None:
    """And holds nothing back for it."""
    room = site.gateway()
    site.records.error = BusDown("gone")
    await room.count("acme", 10_000, site.at + LIFE)
    site.records.error = None
    assert await room.pause("acme") == 0.0
    with pytest.raises(TooMuch):
        await room.take("acme", 85_000, site.at + LIFE)
