"""Going back to what was deployed before, and promoting what a rollout has proven."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.rollouts.rollout_moves import ended, started, with_share
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.spec import AppRecord, Schedule
from pilotlight_gateway.deploys.moves.app_moves import AppMoves
from tests.gateway.deploys.deploying import ACME, Deploying
from tests.gateway.world import World, function


def shop(world: World) -> AppRecord:
    return world.registry.apps["acme", "shop"]


def rollouts(world: World) -> RolloutRecord:
    return world.registry.rollout_records["acme", "shop"]


def begin(world: World, canary: str) -> Rollout:
    """A rollout of `canary` on its ramp."""
    rollout = Rollout(
        id="rol_1", number=0, control=shop(world).functions, canary={"hello": canary}, salt=b"s" * 32,
        since=0.0, started_at=0.0, by="key2",
    )  # fmt: skip
    record = started(world.registry.rollout_records.get(("acme", "shop")), "acme", "shop", rollout)
    record = with_share(record, share=500, twin_share=0, at=1.0, step=0, state=RolloutState.RAMP)
    world.registry.rollout_records["acme", "shop"] = record
    assert record.rollout is not None
    return record.rollout


async def test_an_app_goes_back_to_the_deploy_before(world: World, deploying: Deploying) -> None:
    """In one step, and what waits for the version that leaves is sent elsewhere."""
    first, second = await deploying(b"one"), await deploying(b"two")
    went = await AppMoves(registry=world.registry).roll_back(ACME, "shop", reason="slow")

    assert shop(world).functions == {"hello": first.functions[0].version_id}
    line = shop(world).history[-1]
    assert (went.back_to, went.aborted, line.back_to, line.by) == (1, None, 1, "key1")
    assert line.message == "rollback to revision 1: slow"
    assert rollouts(world).called_back == (second.functions[0].version_id,)


async def test_what_was_called_back_may_be_deployed_again(world: World, deploying: Deploying) -> None:
    """A person has taken it out of service, and nobody has judged it; what waits for it then stays."""
    await deploying(b"one")
    await deploying(b"two")
    await AppMoves(registry=world.registry).roll_back(ACME, "shop")
    again = await deploying(b"two")

    assert shop(world).functions == {"hello": again.functions[0].version_id}
    assert rollouts(world).called_back == ()


async def test_a_revision_may_be_named(world: World, deploying: Deploying) -> None:
    """Any that the history has, also one that was only registered."""
    await deploying(b"one")
    await deploying(b"two")
    third = await deploying(b"three", no_traffic=True)
    moves = AppMoves(registry=world.registry)

    with pytest.raises(NotFound, match="no deploy of revision 9"):
        await moves.roll_back(ACME, "shop", 9)
    await moves.roll_back(ACME, "shop", third.revision)

    assert shop(world).functions == {"hello": third.functions[0].version_id}
    with pytest.raises(NotFound, match="no app"):
        await moves.roll_back(ACME, "shoq")


async def test_a_rollout_that_is_under_way_is_aborted(world: World, deploying: Deploying) -> None:
    """The old versions never left, so nothing else moves; the new one is not marked: nobody found it bad."""
    await deploying(b"one")
    canary = await deploying(b"two", no_traffic=True)
    rollout = begin(world, canary.functions[0].version_id)
    before = shop(world)

    went = await AppMoves(registry=world.registry).roll_back(ACME, "shop")

    assert went.aborted is not None
    assert (went.aborted.id, went.back_to) == (rollout.id, 0)
    assert shop(world) == before
    after = rollouts(world).rollout
    assert after is not None
    assert (after.state, after.share, after.reason) == (RolloutState.ROLLING_BACK, 0, "called back by key1")
    assert rollouts(world).withdrawn == {}


async def test_going_back_further_aborts_the_rollout_too(world: World, deploying: Deploying) -> None:
    """Routing first, then what is deployed."""
    first = await deploying(b"one")
    await deploying(b"two")
    canary = await deploying(b"three", no_traffic=True)
    begin(world, canary.functions[0].version_id)

    went = await AppMoves(registry=world.registry).roll_back(ACME, "shop", 1)

    assert went.aborted is not None
    assert shop(world).functions == {"hello": first.functions[0].version_id}
    assert rollouts(world).running is not None  # until what runs of it has ended


async def test_a_version_that_is_gone_cannot_be_gone_back_to(world: World, deploying: Deploying) -> None:
    """The error names it, and nothing has moved."""
    first = await deploying(b"one")
    await deploying(b"two")
    del world.registry.versions[first.functions[0].version_id]
    before = shop(world)

    with pytest.raises(NotFound, match=r"shop.hello@v1 is not kept"):
        await AppMoves(registry=world.registry).roll_back(ACME, "shop")

    assert shop(world) == before


async def test_a_promotion_puts_the_new_versions_into_service(world: World, deploying: Deploying) -> None:
    """Once, however often it is asked for."""
    await deploying(b"one", function(serves=("tiny",)))
    canary = await deploying(b"two", function(serves=("tiny", "small")), no_traffic=True)
    rollout = begin(world, canary.functions[0].version_id)
    moves = AppMoves(registry=world.registry)
    assert ("acme", "small") not in world.registry.model_records

    promoted = await moves.promote("acme", "shop", rollout)
    again = await moves.promote("acme", "shop", rollout)

    assert promoted == again == shop(world)
    assert promoted.functions == rollout.canary
    assert (promoted.history[-1].by, promoted.history[-1].message) == ("key2", "rollout 1")
    assert ("acme", "small") in world.registry.model_records
    assert promoted.history[-1].traffic


async def test_after_a_promotion_one_can_go_back(world: World, deploying: Deploying) -> None:
    """It is a deploy as others are."""
    first = await deploying(b"one")
    canary = await deploying(b"two", no_traffic=True)
    moves, rollout = AppMoves(registry=world.registry), begin(world, canary.functions[0].version_id)
    await moves.promote("acme", "shop", rollout)
    world.registry.rollout_records["acme", "shop"] = ended(rollouts(world), 5.0, RolloutState.PROMOTED)

    await moves.roll_back(ACME, "shop")

    assert shop(world).functions == {"hello": first.functions[0].version_id}


@pytest.mark.parametrize("stop", [True, False])
async def test_what_was_moved_since_is_not_promoted(world: World, deploying: Deploying, stop: Any) -> None:
    """A person's word wins over the judge's."""
    await deploying(b"one")
    canary = await deploying(b"two", no_traffic=True)
    rollout = begin(world, canary.functions[0].version_id)
    if stop:
        await world.services.deployer.stop(ACME, "shop")
    else:
        await deploying(b"three")
    before = shop(world)

    with pytest.raises(Conflict, match="cannot be promoted"):
        await AppMoves(registry=world.registry).promote("acme", "shop", rollout)

    assert shop(world) == before


async def test_limits_of_a_tenant_hold_for_a_promotion(world: World, deploying: Deploying) -> None:
    """Its schedules only begin then."""
    await deploying(b"one")
    canary = await deploying(b"two", no_traffic=True)
    version = world.registry.versions[canary.functions[0].version_id]
    often = (Schedule(period_s=1),) * 6
    world.registry.versions[version.id] = replace(version, spec=replace(version.spec, schedules=often))

    with pytest.raises(BadInput, match="schedule"):
        await AppMoves(registry=world.registry).promote("acme", "shop", begin(world, version.id))
