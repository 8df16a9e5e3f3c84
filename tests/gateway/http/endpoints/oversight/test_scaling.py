"""The gateways' load over HTTP, for whoever scales them."""

from __future__ import annotations

import time

from pilotlight_core.model.messages.scheduling import GatewayLoad
from tests.gateway.world import World

PATH = "/v1/scaling/gateways"


def load(name: str, **more: float) -> GatewayLoad:
    return GatewayLoad(
        gateway=f"{name}.1", name=name, requests_per_s=more["rate"], loop_lag_s=more["lag"],
        body_bytes=int(more["bodies"]), body_bytes_limit=1_000, calls=4,
    )  # fmt: skip


async def test_each_gateway_is_shown_and_all_together(world: World) -> None:
    """As a sum, and as the most that one of them has: a scaler reads one number by its path."""
    at = time.monotonic()
    world.services.loads.on_load(load("b", rate=30.0, lag=0.25, bodies=100), at)
    world.services.loads.on_load(load("a", rate=10.5, lag=0.01, bodies=900), at)
    world.services.loads.on_load(load("gone", rate=10.5, lag=0.01, bodies=900), at - 60.0)
    operator = world.add_key("acme", "operator")
    async with world.client(str(operator)) as client:
        told = (await client.get(PATH)).json()

    assert [(one["name"], one["requests_per_s"], one["body_bytes"]) for one in told["gateways"]] == [
        ("a", 10.5, 900), ("b", 30.0, 100),
    ]  # fmt: skip
    assert told["sum"] == {
        "gateways": 2, "requests_per_s": 40.5, "loop_lag_s": 0.26, "body_bytes": 1_000, "body_part": 1.0, "calls": 8,
    }  # fmt: skip
    assert (told["most"]["requests_per_s"], told["most"]["loop_lag_s"], told["most"]["body_part"]) == (30.0, 0.25, 0.9)


async def test_where_none_has_told_anything_all_is_zero(world: World) -> None:
    """In the first moments of a gateway."""
    async with world.client(str(world.add_key("acme", "operator"))) as client:
        told = (await client.get(PATH)).json()
    assert (told["gateways"], told["sum"]["gateways"], told["most"]["loop_lag_s"]) == ([], 0, 0.0)


async def test_only_who_runs_the_platform_may_see_it(world: World) -> None:
    """A tenant's administrator does not."""
    async with world.client(str(world.add_key("acme", "admin"))) as client:
        assert (await client.get(PATH)).status_code == 403
