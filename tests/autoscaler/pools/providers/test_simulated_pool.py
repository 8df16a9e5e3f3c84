"""The cloud in memory."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.pools.node_pool import LaunchOrder, NoCapacity, NoticeAbout, PoolMachine, PoolNotice
from pilotlight_autoscaler.pools.providers.simulated_pool import LostAnswer, SimulatedPool
from tests.builders.pools import launch, pool


async def test_it_keeps_the_contract_of_the_port() -> None:
    """Launched twice it is one machine; ended twice it is gone; other pools do not see it."""
    came: list[PoolMachine] = []
    went: list[PoolMachine] = []
    cloud = SimulatedPool(on_launch=came.append, on_end=went.append)
    mine, other = cloud.open(pool()), cloud.open(pool("other"))
    order = LaunchOrder(pool=pool(), launch=launch(1), types=("g6.xlarge",))

    machine = await mine.launch(order)
    assert await mine.launch(order) == machine
    assert (list(await mine.list_machines()), list(await other.list_machines())) == ([machine], [])
    await mine.terminate(machine)
    await mine.terminate(machine)
    assert list(await mine.list_machines()) == []
    assert (came, went) == ([machine], [machine])
    await mine.aclose()


async def test_it_is_scripted_by_its_fields() -> None:
    """Errors, lost answers, notices."""
    cloud = SimulatedPool(errors=[NoCapacity("none")], crash_after=1)
    cloud.to_tell = [PoolNotice(provider_id="i-0", about=NoticeAbout.STATE)]
    mine = cloud.open(pool())
    order = LaunchOrder(pool=pool(), launch=launch(1), types=("g6.xlarge",))
    with pytest.raises(NoCapacity):
        await mine.launch(order)
    with pytest.raises(LostAnswer):
        await mine.launch(order)
    assert len(await mine.list_machines()) == 1
    assert [len(await mine.notices()) for _ in range(2)] == [1, 0]
