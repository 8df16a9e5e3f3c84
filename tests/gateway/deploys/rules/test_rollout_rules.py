"""What a deploy means for the rollouts of its app."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput, Conflict
from pilotlight_core.model.rollouts.rollout_moves import rolled_back
from pilotlight_core.model.rollouts.rollout_record import RolloutState
from tests.gateway.deploys.deploying import Deploying
from tests.gateway.deploys.moves.test_app_moves import begin, rollouts, shop
from tests.gateway.world import World, function


async def test_a_deploy_without_traffic_leaves_callers_where_they_are(world: World, deploying: Deploying) -> None:
    """Its version has a number, by which it can be called; functions that it lacks stay."""
    await deploying(b"one", function("hello"), function("other"))
    before = shop(world).functions
    answer = await deploying(b"two", function("hello"), no_traffic=True)

    assert shop(world).functions == before
    (line,) = answer.functions
    assert (line.version, line.changed, answer.removed) == ("shop.hello@v2", True, ())
    assert line.endpoint == "/v1/functions/shop.hello@v2/calls"
    found = await world.services.resolver.resolve("acme", "shop.hello@v2")
    assert found.id == line.version_id


async def test_a_rollout_goes_on_beside_it(world: World, deploying: Deploying) -> None:
    """The next version may be registered while one is tried."""
    await deploying(b"one")
    canary = await deploying(b"two", no_traffic=True)
    begin(world, canary.functions[0].version_id)
    await deploying(b"three", no_traffic=True)

    assert rollouts(world).running is not None


async def test_a_deploy_ends_the_rollout(world: World, deploying: Deploying) -> None:
    """Its old version serves no more, so there is nothing to compare."""
    await deploying(b"one")
    canary = await deploying(b"two", no_traffic=True)
    begin(world, canary.functions[0].version_id)
    await deploying(b"three")

    rollout = rollouts(world).rollout
    assert rollout is not None
    assert (rollout.state, rollout.share) == (RolloutState.SUPERSEDED, 0)


async def test_what_was_rolled_back_is_refused_until_it_is_said(world: World, deploying: Deploying) -> None:
    """A pipeline that deploys the same content again must not undo the rollback."""
    await deploying(b"one")
    canary = await deploying(b"two", no_traffic=True)
    begin(world, canary.functions[0].version_id)
    world.registry.rollout_records["acme", "shop"] = rolled_back(rollouts(world), 2.0, "slower")

    with pytest.raises(Conflict, match="say --retry") as refused:
        await deploying(b"two")
    await deploying(b"two", no_traffic=True)  # nobody is sent there
    answer = await deploying(b"two", retry=True)
    again = await deploying(b"two")

    assert refused.value.wire_code == "version_withdrawn"
    assert answer.functions[0].version_id == canary.functions[0].version_id
    assert not again.functions[0].changed
    assert rollouts(world).withdrawn == {}


async def test_a_run_serves_at_once(deploying: Deploying) -> None:
    """What nobody can call is no run."""
    with pytest.raises(BadInput, match="no_traffic"):
        await deploying(b"one", no_traffic=True, ends_in_s=60.0)
