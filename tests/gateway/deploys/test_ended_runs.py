"""Runs that nobody renewed are deleted."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from pilotlight_gateway.deploys import ended_runs
from pilotlight_gateway.deploys.ended_runs import delete_ended_runs, watch_ended_runs
from tests.gateway.world import World, function
from tests.waiting import until

AT = 1_000_000.0


def deploy(world: World, app: str, ends_at: float, tenant: str = "acme") -> None:
    world.deploy(function(), app=app, tenant=tenant)
    record = world.registry.apps[tenant, app]
    world.registry.apps[tenant, app] = msgspec.structs.replace(record, ends_at=ends_at)


async def test_what_has_ended_goes_and_nothing_else(world: World) -> None:
    """Of one tenant or of all; what is deployed has no end."""
    deploy(world, "over", AT)
    deploy(world, "alive", AT + 1.0)
    deploy(world, "deployed", 0.0)
    deploy(world, "over", AT - 1.0, tenant="zoo")

    assert await delete_ended_runs(world.registry, AT, "acme") == 1
    assert set(world.registry.apps) == {("acme", "alive"), ("acme", "deployed"), ("zoo", "over")}
    assert await delete_ended_runs(world.registry, AT) == 1
    assert set(world.registry.apps) == {("acme", "alive"), ("acme", "deployed")}


async def test_a_gateway_looks_for_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again."""
    monkeypatch.setattr(ended_runs, "LOOK_EVERY_S", 0.01)
    watching = asyncio.ensure_future(watch_ended_runs(world.registry))
    for name in ("one", "two"):
        deploy(world, name, AT)
        await until(lambda: not world.registry.apps)
    watching.cancel()
