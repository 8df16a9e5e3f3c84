"""How the gateway is."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.world import World, function


async def test_alive_is_not_ready(world: World) -> None:
    """/healthz holds whatever is missing; /readyz names the first thing that is."""
    async with world.client("") as client:
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        world.calls.not_ready = "no home lease"
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "starting")
        assert "no home lease" in answer.json()["detail"]
        world.registry.stale = True
        assert "registry" in (await client.get("/readyz")).json()["detail"]
        world.services.bus_connected = lambda: False
        assert "bus" in (await client.get("/readyz")).json()["detail"]
        assert (await client.get("/healthz")).status_code == 200


async def test_metrics_are_prometheus_text_with_bounded_labels(world: World) -> None:
    """Calls, stages, requests by route pattern and what others know, under our names and units."""
    world.deploy(function())
    async with world.client() as client:
        await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": "x"}})
        await client.post("/v1/functions/shop.hello/calls", json={})
        await client.get("/v1/functions/shop.hello/nonsense")
        text = world.services.exposition()
        # They tell of the whole platform: they are for operators, on a port of their own.
        assert (await client.get("/metrics")).status_code == 404

    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = [sample for family in families.values() for sample in family.samples]
    values = {(sample.name, *sorted(sample.labels.items())): sample.value for sample in samples}
    assert values["pilotlight_calls_total", ("code", ""), ("outcome", "ok")] == 1
    assert values["pilotlight_calls_total", ("code", "bad_input"), ("outcome", "error")] == 1
    assert values["pilotlight_call_stage_seconds_count", ("stage", "execute")] == 1
    assert values["pilotlight_queue_depth",] == 3
    assert values["pilotlight_queue_oldest_seconds",] == 1.5
    assert values["pilotlight_containers", ("state", "ready")] == 1
    assert values["pilotlight_http_requests_total", ("route", ""), ("status", "404")] == 1
    assert "shop" not in text
    assert all(name.startswith("pilotlight_") for name in families)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json"])
async def test_operators_need_no_key(world: World, path: str) -> None:
    """Probes and scrapers have none."""
    async with world.client("") as client:
        assert (await client.get(path)).status_code == 200
