"""What is under pressure, for operators and for tenants."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pilotlight_core.model.messages.scheduling import (
    BreakerReport,
    Breakers,
    FlowLoad,
    GatewayLoad,
    QueueLoad,
    SlowFlowLoad,
)
from pilotlight_gateway.http.endpoints.oversight.pressure import start_steps, why_waiting
from tests.gateway.world import World, function


def tell(world: World, *queues: QueueLoad, slow: tuple[SlowFlowLoad, ...] = (), left: int = 0) -> None:
    """A gateway tells its load."""
    load = GatewayLoad(
        gateway="g.1", name="g", requests_per_s=0.0, loop_lag_s=0.0, body_bytes=0, body_bytes_limit=1,
        queued=sum(queue.queued for queue in queues), queues=queues, queues_left=left, slow=slow,
    )  # fmt: skip
    world.services.loads.on_load(load, time.monotonic())


def queue(version: str, tenant: str = "acme", **more: Any) -> QueueLoad:
    return QueueLoad(version=version, function=f"{tenant}:shop.hello", **more)


async def shown(world: World, path: str, key: object) -> Any:
    async with world.client(str(key)) as client:
        answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_operators_see_who_waits_and_tenants_what_is_theirs(world: World) -> None:
    """Of a shared function its owner sees how much waits, and not whose."""
    (version,) = world.deploy(function())
    flows = (
        FlowLoad(tenant="acme", priority="standard", queued=1, oldest_ms=10.0),
        FlowLoad(tenant="friend", priority="standard", queued=2, oldest_ms=20.0),
    )
    tell(
        world,
        queue(version.id, queued=3, oldest_ms=20.0, slots=4, ready=2, running=4, service_ms=100.0, flows=flows),
        queue("ver_other", "rival", queued=5, oldest_ms=900.0, shortage="node-7 is full"),
        left=6,
    )

    told = await shown(world, "/v1/queues", world.operator)
    assert [(one["tenant"], one["queued"], one["why"]) for one in told["queues"]] == [
        ("rival", 5, "no_capacity"), ("acme", 3, "full"),
    ]  # fmt: skip
    assert (told["queued"], told["left"], told["queues"][0]["sentence"]) == (8, 6, "node-7 is full")
    assert [one["gateway"] for one in told["queues"]] == ["g", "g"]
    assert [one["gateway"] for one in (await shown(world, "/v1/queues", world.key))["queues"]] == [""]
    assert [flow["tenant"] for flow in told["queues"][1]["flows"]] == ["acme", "friend"]
    assert (told["queues"][1]["version"], told["queues"][1]["expected_ms"]) == ("shop.hello@v1", 75.0)

    own = await shown(world, "/v1/queues", world.key)
    assert [(one["tenant"], one["flows_left"]) for one in own["queues"]] == [("acme", 1)]
    assert "friend" not in str(own)
    rival = await shown(world, "/v1/queues", world.add_key("rival", "read"))
    assert rival["queues"][0]["sentence"] == "There is no place for a container now."
    assert (rival["queued"], rival["left"]) == (5, 0)


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (queue("v"), ""),
        (queue("v", queued=1), "starting"),
        (queue("v", queued=1, starting=1), "starting"),
        (queue("v", queued=1, ready=1, slots=2), "full"),
        (queue("v", queued=1, shortage="full"), "no_capacity"),
        (queue("v", queued=1, shortage="full", failed_starts=3), "crash_loop"),
        (queue("v", queued=1, ready=1, slots=2, failed_starts=3), "full"),
        (queue("v", breaker="open"), "breaker_open"),
    ],
)
def test_what_calls_wait_for_is_told_apart(load: QueueLoad, why: str) -> None:
    """A crash loop is no lack of capacity, whatever the controller says."""
    assert why_waiting(load)[0] == why
    assert bool(why_waiting(load)[1]) == bool(why)


async def test_a_neighbour_is_named_to_operators_only(world: World) -> None:
    """Whoever is slowed down sees by how much."""
    flow = SlowFlowLoad(
        version="v", function="acme:shop.hello", tenant="victim", priority="standard", slowdown=15.7, calls=30,
        neighbour="bully",
    )  # fmt: skip
    tell(world, slow=(flow,))

    told = await shown(world, "/v1/slowdowns", world.operator)
    assert [(one["tenant"], one["slowdown"], one["neighbour"]) for one in told["slowdowns"]] == [
        ("victim", 15.7, "bully")
    ]
    own = await shown(world, "/v1/slowdowns", world.add_key("victim", "read"))
    assert [(one["slowdown"], one["neighbour"]) for one in own["slowdowns"]] == [(15.7, "")]
    assert (await shown(world, "/v1/slowdowns", world.key))["slowdowns"] == []


async def test_breakers_of_callers_are_not_told_to_owners(world: World) -> None:
    """Who calls a shared function, and fails, is between the caller and the platform."""
    (version,) = world.deploy(function())
    reports = (
        BreakerReport(version=version.id, state="closed", failures=2),
        BreakerReport(version=version.id, tenant="friend", state="open", failures=5, retry_after=4.0),
        BreakerReport(version=version.id, container="ctr_1", state="half_open", failures=5),
    )
    world.services.placements.view.on_breakers(Breakers(gateway="g", reports=reports), time.monotonic())

    told = (await shown(world, "/v1/breakers", world.operator))["breakers"]
    assert [(one["of"], one["state"]) for one in told][-1] == ("version", "closed")
    assert {(one["of"], one["container"] or one["caller"]) for one in told} == {
        ("version", ""), ("tenant", "friend"), ("container", "ctr_1"),
    }  # fmt: skip
    own = (await shown(world, "/v1/breakers", world.key))["breakers"]
    assert {one["of"] for one in own} == {"version", "container"}
    assert (await shown(world, "/v1/breakers", world.add_key("rival", "read")))["breakers"] == []


def test_starts_are_told_by_function_and_step() -> None:
    """On average over the containers that have told their steps, the slowest function first."""
    base = {"tenant": "acme", "app": "shop", "state": "ready"}
    containers = [
        {**base, "function": "hello", "timeline": {"load": 100.0, "warm": 10.0}},
        {**base, "function": "hello", "timeline": {"load": 300.0}, "state": "loading"},
        {**base, "function": "slow", "timeline": {"load": 900.0}},
        {**base, "function": "new", "timeline": {}},
    ]
    slow, hello = start_steps(containers)
    assert (slow.function, slow.total_ms) == ("acme:shop.slow", 900.0)
    assert (hello.containers, hello.starting, hello.total_ms, hello.longest_ms) == (2, 1, 205.0, 300.0)
    assert hello.steps == {"load": 200.0, "warm": 5.0}


async def test_starts_are_of_own_containers(world: World) -> None:
    """Operators see all."""
    world.calls.listed = [
        {"tenant": tenant, "app": "shop", "function": "hello", "state": "ready", "timeline": {"load": 5.0}}
        for tenant in ("acme", "rival")
    ]
    assert len((await shown(world, "/v1/starts", world.operator))["starts"]) == 2
    assert [one["tenant"] for one in (await shown(world, "/v1/starts", world.key))["starts"]] == ["acme"]
