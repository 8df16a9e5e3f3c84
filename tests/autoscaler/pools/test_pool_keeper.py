"""Pools in virtual time: from a container without a place to a node, until it is gone; and controllers that die."""

from __future__ import annotations

import asyncio
import random

import pytest

from pilotlight_autoscaler.policy.nodes.launch_steps import SILENT_S, UNLISTED_S
from pilotlight_autoscaler.pools.machine_requests import MISSING_S
from pilotlight_autoscaler.pools.machine_sights import ORPHANED_S
from pilotlight_autoscaler.pools.node_pool import LaunchRefused, NoCapacity, NoticeAbout, PoolError, PoolNotice
from pilotlight_autoscaler.pools.open_pools import no_pool
from pilotlight_autoscaler.pools.pool_keeper import LOST_S
from pilotlight_autoscaler.pools.providers.simulated_pool import LostAnswer
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord, NodeState
from pilotlight_core.model.records.pools import LaunchState, PoolState
from tests.autoscaler.pools.pool_world import PoolWorld
from tests.builders.nodes import container
from tests.builders.pools import EIGHT_L4, pool
from tests.variants import with_variants


@pytest.fixture
def world() -> PoolWorld:
    """One with a pool of up to two machines, which go after a minute without containers."""
    made = PoolWorld()
    made.add(pool(most_nodes=2, consolidate_after_s=60.0, give_up_after_s=120.0))
    return made


async def test_what_has_no_place_gets_a_node_until_it_is_empty(world: PoolWorld) -> None:
    """The record is there before the provider is asked; the node drains before its machine is ended; nothing stays."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (record,) = world.launches()
        assert (record.state, record.provider_id, record.zone) == (LaunchState.UP, "i-0", "a")
        assert [order.launch.id for order in world.cloud.orders] == [record.id]
        assert record.join_token  # its digest alone is on record, and the machine has it
        assert world.cloud.orders[0].join_text.startswith(f"pl_join_{record.join_token}_")

        world.world.refusals.keep(())
        world.containers[record.node] = (container(),)
        await world.settle(120.0)
        assert [each.state for each in world.launches()] == [LaunchState.UP]

        world.containers.clear()
        await world.settle(70.0)
        assert not world.launches()
        assert not world.cloud.machines
        assert not world.registry.node_records
        assert not world.registry.join_records


async def test_what_is_parked_keeps_no_machine(world: PoolWorld) -> None:
    """It may be called within the hour, and takes no slice: a machine costs more than another start."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (record,) = world.launches()
        world.world.refusals.keep(())
        world.containers[record.node] = (container(state=ContainerState.PARKED, slice="", idle_s=1.0),)
        await world.settle(70.0)
        assert record.id not in {each.id for each in world.launches() if not each.is_going}


async def test_a_place_that_becomes_free_soon_needs_no_machine(world: PoolWorld) -> None:
    """Whoever finds one within a second is not launched for."""
    async with world.leading():
        await world.settle()
        world.miss("v1")
        await world.turn()
        world.world.refusals.keep(())
        await world.settle()
        assert not world.cloud.orders


async def test_who_waits_hears_for_what(world: PoolWorld) -> None:
    """For a node of which pool; or that the pool is at its limit."""
    world.answers = False
    async with world.leading():
        world.miss("v1")
        world.miss("v2", "v2", "v2")
        await world.settle()
        hopes = world.world.hopes
        told = hopes.text("v1", world.now)
        assert told.startswith("waiting for a node of the pool l4, l4-")
        assert hopes.expected_s("v1", world.now) > 0.0
        assert hopes.text("v3", world.now) == ""
        assert "limit of 2 nodes" in hopes.text("v2", world.now) or "waiting" in hopes.text("v2", world.now)
        assert len(world.cloud.machines) == 2


async def test_a_machine_that_never_reports_is_given_up(world: PoolWorld) -> None:
    """It is ended, and that is counted; while its function waits another one is tried."""
    world.answers = False
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (first,) = world.launches()
        world.world.refusals.keep(())
        await world.settle(200.0)
        assert first.id not in {each.id for each in world.launches()}
        assert not world.cloud.machines
        failures = {
            sample.labels["what"]: sample.value
            for family in world.keeper.counts.collect()
            for sample in family.samples
            if sample.name == "pilotlight_pool_failures_total"
        }
        assert failures == {"never_reported": 1.0}


async def test_a_controller_that_dies_before_it_asks_leaves_a_launch_that_the_next_one_asks_for(
    world: PoolWorld,
) -> None:
    """By the same id."""
    world.cloud.errors = [PoolError("nobody answers"), PoolError("nobody answers")]
    async with world.leading():
        world.miss("v1")
        await world.settle(5.0)
    (record,) = world.launches()
    assert not world.cloud.machines

    world.cloud.errors.clear()
    world.begin()
    async with world.leading():
        await world.settle(15.0)
        assert set(world.cloud.machines) == {record.id}
        assert [each.state for each in world.launches()] == [LaunchState.UP]


async def test_a_controller_that_dies_before_it_hears_finds_the_machine_by_its_tags(world: PoolWorld) -> None:
    """No second one is launched, and no machine is paid for that nobody knows."""
    world.cloud.crash_after = 1
    try:
        async with world.leading():
            world.miss("v1")
            await world.settle()
    except* LostAnswer:
        pass
    (record,) = world.launches()
    assert record.provider_id == ""

    world.begin()
    async with world.leading():
        world.miss("v1")
        await world.settle(10.0)
        assert list(world.cloud.machines) == [record.id]
        assert [(each.id, each.provider_id, each.state) for each in world.launches()] == [
            (record.id, "i-0", LaunchState.UP)
        ]


async def test_a_launch_of_a_pool_that_was_removed_behind_it_goes_off_the_record(world: PoolWorld) -> None:
    """The gateway that removed it had not heard of the launch."""
    world.cloud.errors = [PoolError("nobody answers")] * 9
    async with world.leading():
        world.miss("v1")
        await world.settle(5.0)
        assert len(world.launches()) == 1
        world.registry.pool_records.clear()
        await world.settle(UNLISTED_S + 10.0)
        assert world.launches() == []
        assert not world.registry.join_records


async def test_a_machine_whose_pool_was_removed_is_told_of(world: PoolWorld) -> None:
    """Nobody can end it: an operator has to."""
    world.answers = False
    async with world.leading():
        world.miss("v1")
        await world.settle(5.0)
        assert len(world.cloud.machines) == 1
        world.registry.pool_records.clear()
        await world.settle(1_000.0)
        assert world.launches() == []
        failures = {
            sample.labels["what"]
            for family in world.keeper.counts.collect()
            for sample in family.samples
            if sample.name == "pilotlight_pool_failures_total"
        }
        assert "left_behind" in failures


async def test_the_machine_that_an_earlier_controller_launched_joins(world: PoolWorld) -> None:
    """By the token that it was given, also if a later one has asked for it anew, with another."""
    world.cloud.errors = [PoolError("nobody answers")] * 2
    async with world.leading():
        world.miss("v1")
        await world.settle(5.0)
    world.begin()
    async with world.leading():
        await world.settle(3.0)
    texts = {order.join_text for order in world.cloud.orders}
    assert len(texts) == 2
    assert len(world.registry.join_records) == 2


async def test_a_machine_that_no_record_knows_is_ended(world: PoolWorld) -> None:
    """After a while, in which its record could have come."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        world.registry.launch_records.clear()
        world.world.refusals.keep(())
        await world.turn(1.0)
        assert world.cloud.machines
        await world.settle(ORPHANED_S + 15.0)
        assert not world.cloud.machines


@pytest.mark.parametrize("error", [NoCapacity("none left"), LaunchRefused("no such image")])
async def test_what_a_provider_does_not_have_is_not_asked_for_again_soon(world: PoolWorld, error: Exception) -> None:
    """The slot is free again, and nobody waits for that machine."""
    world.cloud.errors = [error]
    async with world.leading():
        world.miss("v1")
        await world.settle(5.0)
        assert not world.launches()
        assert len(world.cloud.orders) == 1
        assert "no capacity" in world.world.hopes.text("v1", world.now)
        if isinstance(error, NoCapacity):
            await world.settle(MISSING_S)
            assert [each.state for each in world.launches()] == [LaunchState.UP]


async def test_a_controller_that_was_deposed_changes_nothing(world: PoolWorld) -> None:
    """Its successor's records stand; and without its lease it asks for nothing."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (record,) = world.launches()
        world.registry.launch_records[f"l4.{record.slot}"] = type(record)(
            **{name: getattr(record, name) for name in record.__struct_fields__ if name != "epoch"}, epoch=99
        )
        world.registry.pool_records["l4"] = pool(state=PoolState.DRAINING)
        await world.settle(10.0)
    assert [each.state for each in world.launches()] == [LaunchState.UP]


async def test_a_warned_node_drains(world: PoolWorld) -> None:
    """As its provider said; it is gone when its provider has taken it."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (record,) = world.launches()
        world.world.refusals.keep(())
        world.containers[record.node] = (container(),)
        world.cloud.to_tell = [
            PoolNotice(provider_id="i-0", about=NoticeAbout.REBALANCE, reason="soon"),
            PoolNotice(provider_id="i-77", about=NoticeAbout.INTERRUPTION),
        ]
        await world.settle(12.0)
        (going,) = world.launches()
        assert (going.state, going.reason) == (LaunchState.DRAINING, "soon")
        drained = world.registry.node_records[record.node]
        assert drained.state is NodeState.DRAINING

        world.cloud.remove(record.id)
        await world.settle(UNLISTED_S + 30.0)
        assert not world.launches()


async def test_a_node_that_drains_and_is_not_heard_of_for_a_moment_goes_on(world: PoolWorld) -> None:
    """Its containers run; after a while what ran there counts as lost."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (record,) = world.launches()
        world.world.refusals.keep(())
        world.containers[record.node] = (container(),)
        await world.settle(30.0)
        world.cloud.to_tell = [PoolNotice(provider_id="i-0", about=NoticeAbout.REBALANCE, reason="soon")]
        await world.settle(12.0)
        world.answers = False
        await world.settle(LOST_S - 2.0)
        assert record.node not in world.world.nodes
        assert [each.state for each in world.launches()] == [LaunchState.DRAINING]
        await world.settle(4.0)
        assert [each.state for each in world.launches()] != [LaunchState.DRAINING]


async def test_the_zone_of_a_spot_node_that_is_taken_is_left_out(world: PoolWorld) -> None:
    """Its replacement is launched in another one."""
    world.add(pool(zones=("a", "b", "c"), purchase=Purchase.SPOT))
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (first,) = world.launches()
        world.cloud.to_tell = [PoolNotice(provider_id="i-0", about=NoticeAbout.INTERRUPTION)]
        await world.settle(12.0)
        assert world.spot_zones.avoided(("a", "b", "c"), world.now) == {first.zone}
        others = {each.zone for each in world.launches() if each.id != first.id}
        assert others
        assert first.zone not in others


async def test_a_silent_node_is_ended(world: PoolWorld) -> None:
    """Its machine may run on, and cost."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        world.world.refusals.keep(())
        world.answers = False
        for _ in range(int(SILENT_S / 5) + 10):
            await world.turn(5.0)
        assert not world.cloud.machines
        assert not world.launches()


async def test_a_joined_node_has_the_zone_of_its_machine(world: PoolWorld) -> None:
    """Its token was made before that was known."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (record,) = world.launches()
        labels = NodeLabels(region="local", zone="a", pool="l4")
        world.registry.node_records[record.node] = NodeRecord(node=record.node, labels=labels)
        machine = world.cloud.machines[record.id]
        world.cloud.machines[record.id] = type(machine)(
            launch=machine.launch, provider_id=machine.provider_id, node=machine.node, type=machine.type, zone="b"
        )
        await world.settle(12.0)
        found = world.registry.node_records[record.node].labels
        assert found is not None
        assert found.zone == "b"


async def test_a_drained_pool_lets_all_nodes_go(world: PoolWorld) -> None:
    """With what runs on them, as it ends; and none comes while something waits."""
    async with world.leading():
        world.miss("v1")
        await world.settle()
        (record,) = world.launches()
        world.containers[record.node] = (container(),)
        world.add(pool(state=PoolState.DRAINING))
        await world.settle(10.0)
        assert [each.state for each in world.launches()] == [LaunchState.DRAINING]
        world.containers.clear()
        await world.settle(20.0)
        assert not world.launches()
        assert not world.cloud.machines


async def test_what_a_node_has_shown_goes_before_what_people_say_of_its_type(world: PoolWorld) -> None:
    """A machine with less than its pool says is not launched again and again for what it does not hold."""
    world.add(pool("l4", EIGHT_L4, most_nodes=5))
    async with world.leading():
        world.miss("v1", "v1", "v1")
        await world.settle(4.5)
        assert [each.type for each in world.launches()] == ["g6.48xlarge"]
        await world.settle(20.0)
        assert len(world.launches()) == 3  # each has one GPU, as the first one has shown


async def test_nothing_happens_without_pools() -> None:
    """Whatever waits."""
    world = PoolWorld()
    async with world.leading():
        world.miss("v1")
        await world.settle()
        assert not world.cloud.orders
    with pytest.raises(ValueError, match="nobody here"):
        no_pool(pool())


@pytest.mark.parametrize("seed", with_variants(range(8), 3))
async def test_no_machine_is_lost_however_often_controllers_die(seed: int) -> None:
    """Never more than the limit; in the end, with nothing that waits, none that is paid for."""
    chance = random.Random(seed)
    world = PoolWorld()
    world.add(pool(most_nodes=3, consolidate_after_s=5.0, give_up_after_s=60.0))
    for _ in range(12):
        world.begin()
        world.answers = chance.random() < 0.8
        world.cloud.crash_after = chance.choice((None, 1, 2))
        world.cloud.errors = [PoolError("busy")] * chance.randrange(3)
        try:
            async with world.leading():
                if chance.random() < 0.7:
                    world.miss(*[f"v{number}" for number in range(chance.randrange(1, 6))])
                for _ in range(chance.randrange(1, 60)):
                    await world.turn(chance.choice((0.1, 0.5, 3.0)))
                    assert len(world.cloud.machines) <= 3
        except* (LostAnswer, asyncio.CancelledError):
            pass
    world.begin()
    world.cloud.crash_after, world.cloud.errors, world.answers = None, [], True
    async with world.leading():
        await world.settle(400.0)
    assert not world.cloud.machines
    assert not world.launches()


async def test_spot_nodes_are_stood_in_for_until_they_are_ready() -> None:
    """They are spread over zones; once they are up the stand-ins go, and nothing is launched again."""
    world = PoolWorld()
    world.add(pool("spot", zones=("a", "b", "c"), purchase=Purchase.SPOT, least_nodes=2, most_nodes=2, fallback="sure"))
    world.add(pool("sure"))
    world.answers = False
    async with world.leading():
        await world.settle()
        assert sorted((each.pool, each.stands_in) for each in world.launches()) == [
            ("spot", ""), ("spot", ""), ("sure", "spot"), ("sure", "spot"),
        ]  # fmt: skip
        assert {each.zone for each in world.launches() if each.pool == "spot"} == {"a", "b"}
        world.answers = True
        await world.settle(60.0)
        assert [(each.pool, each.state) for each in world.launches()] == [("spot", LaunchState.UP)] * 2
        orders = len(world.cloud.orders)
        await world.settle(30.0)
        assert len(world.cloud.orders) == orders
