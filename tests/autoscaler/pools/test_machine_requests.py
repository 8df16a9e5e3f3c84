"""What providers are asked, and what comes of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from pilotlight_autoscaler.pools.launch_book import LaunchBook
from pilotlight_autoscaler.pools.machine_requests import MISSING_S, REFUSED_S, MachineRequests, as_listed
from pilotlight_autoscaler.pools.node_pool import LaunchRefused, NoCapacity, PoolError, PoolMachine
from pilotlight_autoscaler.pools.open_pools import OpenPools
from pilotlight_autoscaler.pools.pool_counts import PoolCounts
from pilotlight_autoscaler.pools.providers.simulated_pool import SimulatedPool
from pilotlight_core.model.records.pools import LaunchState
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.autoscaler.pools.pool_world import FakeLease
from tests.builders.pools import EIGHT_L4, L4, launch, pool

NOW = 1_000.0
COMING = launch(1, state=LaunchState.LAUNCHING, made_at=NOW)


@dataclass
class Asking:
    """Requests over a cloud in memory."""

    cloud: SimulatedPool = field(default_factory=SimulatedPool)
    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    lease: FakeLease = field(default_factory=FakeLease)
    ended: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.book = LaunchBook(self.registry, lambda: self.lease.epoch)
        self.requests = MachineRequests(
            self.book, self.lease, OpenPools(self.cloud.open), PoolCounts(), region="local",
            on_ended=self.ended.append, clock=lambda: NOW, wall=lambda: NOW,
        )  # fmt: skip

    async def launch(self) -> None:
        """Ask for the machine, and wait until that is done."""
        await self.book.create(COMING)
        async with asyncio.TaskGroup() as self.requests.tasks:
            await self.requests.start_launch(COMING, pool(), NOW)

    async def end(self, machine: PoolMachine) -> None:
        async with asyncio.TaskGroup() as self.requests.tasks:
            self.requests.start_ending(pool(), machine, NOW)
            self.requests.start_ending(pool(), machine, NOW)  # asked once at a time


async def test_a_machine_is_asked_for_in_each_attempt_by_the_same_token() -> None:
    """What the provider says of it is on record then."""
    asking = Asking(cloud=SimulatedPool(errors=[PoolError("busy"), KeyError("nobody has foreseen this")]))
    for _ in range(3):
        await asking.launch()
    assert len({order.join_text for order in asking.cloud.orders}) == 1
    (record,) = asking.registry.launches()
    assert (record.provider_id, record.type) == ("i-0", "g6.xlarge")
    assert not asking.requests.sights.asking


@pytest.mark.parametrize(("error", "for_s"), [(NoCapacity("none"), MISSING_S), (LaunchRefused("no"), REFUSED_S)])
async def test_what_is_not_to_be_had_is_remembered_and_its_record_goes(error: Exception, for_s: float) -> None:
    """So is its token."""
    asking = Asking(cloud=SimulatedPool(errors=[error]))
    await asking.launch()
    assert asking.requests.missing("l4") == {("g6.xlarge", "a"): NOW + for_s}
    assert asking.requests.missing("other") == {}
    assert [asking.registry.launch_records, asking.registry.join_records] == [{}, {}]


async def test_a_machine_is_ended_and_its_list_read_anew() -> None:
    """If it could not be, it is asked again later."""
    asking = Asking()
    await asking.launch()
    (machine,) = asking.cloud.machines.values()
    await asking.end(machine)
    assert not asking.cloud.machines
    assert asking.ended == ["l4"]


async def test_without_the_lease_nothing_is_asked() -> None:
    """However late that is found."""
    asking = Asking()
    asking.lease.is_valid = False
    await asking.launch()
    await asking.end(PoolMachine(launch="x", provider_id="i-9"))
    assert not asking.cloud.orders
    assert not asking.ended


def test_what_a_provider_lists_goes_before_what_was_asked_for() -> None:
    """Where it says something."""
    both = pool("l4", L4, EIGHT_L4)
    listed = as_listed(COMING, PoolMachine(launch=COMING.id, provider_id="i-1", type=EIGHT_L4.name, zone="b"), both)
    assert (listed.provider_id, listed.type, listed.zone) == ("i-1", EIGHT_L4.name, "b")
    assert listed.digest == both.terms.digest_of(EIGHT_L4.name) != COMING.digest
    bare = as_listed(COMING, PoolMachine(launch=COMING.id, provider_id="i-1"), None)
    assert (bare.type, bare.zone, bare.digest) == (COMING.type, COMING.zone, COMING.digest)
