"""A tenant reads what was counted of its own functions, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from tests.gateway.world import World, function

CALL = "/v1/functions/shop.hello/calls"


@pytest.fixture
def called(world: World) -> World:
    world.deploy(function("hello", slo=function().slo))
    return world


async def test_a_function_tells_what_its_calls_were(called: World) -> None:
    """Outcomes and latency, by stage and version; with a step also its series."""
    async with called.client() as client:
        for _ in range(5):
            assert (await client.post(CALL, json={"input": {"name": "Ada"}})).status_code == 200
        assert (await client.post(CALL, json={"input": {}})).status_code == 422
        stats = (await client.get("/v1/functions/shop.hello/stats?window=5m&step=1m")).json()
    assert (stats["function"], stats["calls"], stats["succeeded"]) == ("shop.hello", 6, 5)
    assert stats["arrivals"] == 6
    assert stats["failed"] == {"bad_input": 1}
    assert (stats["availability"], stats["durations"]["count"]) == (1.0, 5)
    assert stats["durations"]["p95"] > 0
    assert stats["versions"][0]["calls"] == 6
    assert len(stats["slowest"]) == 5
    assert sum(point["calls"] for point in stats["series"]) == 6
    assert stats["gateways"] == []
    assert 300 <= stats["window_s"] < 360


async def test_operators_see_how_gateways_were(called: World) -> None:
    called.deploy(function("hello"), tenant="platform")
    async with called.client(called.operator) as client:
        stats = (await client.get("/v1/functions/shop.hello/stats")).json()
    assert [each["gateway"] for each in stats["gateways"]] == ["gateway"]


async def test_functions_are_listed_by_their_calls(called: World) -> None:
    called.deploy(function("hello"), function("rare"))
    async with called.client() as client:
        for name, times in (("rare", 1), ("hello", 3)):
            for _ in range(times):
                await client.post(f"/v1/functions/shop.{name}/calls", json={"input": {"name": "Ada"}})
        listed = (await client.get("/v1/stats?limit=1")).json()
    assert [(row["function"], row["calls"]) for row in listed["functions"]] == [("shop.hello", 3)]
    assert listed["total"] == 2


async def test_others_see_nothing_of_it(called: World) -> None:
    """Neither its numbers nor its names."""
    stranger = called.add_key("stranger", "admin")
    async with called.client() as client, called.client(stranger) as other:
        await client.post(CALL, json={"input": {"name": "Ada"}})
        assert (await other.get("/v1/functions/acme:shop.hello/stats")).status_code == 404
        assert (await other.get("/v1/stats")).json()["functions"] == []
        assert "hello" not in (await other.get("/v1/metrics")).text


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("window=0m", "window"), ("window=25h", "window"), ("window=10", "window"), ("window=10m&step=11m", "step"),
        ("window=2h&step=1m", "step"), ("window=24h&step=5m", "step"),
    ],
)  # fmt: skip
async def test_a_window_that_is_not_kept_is_refused_by_name(called: World, query: str, field: str) -> None:
    async with called.client() as client:
        refused = await client.get(f"/v1/functions/shop.hello/stats?{query}")
    assert (refused.status_code, refused.json()["field"]) == (422, field)


@pytest.mark.parametrize("limit", ["0", "501", "-1", "many", "9" * 20])
async def test_a_list_has_a_bound(called: World, limit: str) -> None:
    async with called.client() as client:
        refused = await client.get(f"/v1/stats?limit={limit}")
    assert (refused.status_code, refused.json()["field"]) == (422, "limit")


def samples_of(families: Any) -> dict[tuple[str, ...], float]:
    return {
        (each.name, *(each.labels[name] for name in sorted(each.labels) if name != "gateway")): each.value
        for family in families
        for each in family.samples
    }


async def test_a_tenants_prometheus_reads_its_functions(called: World) -> None:
    """As text, and as OpenMetrics if it asks for that."""
    async with called.client() as client:
        for _ in range(3):
            await client.post(CALL, json={"input": {"name": "Ada"}})
        await client.post(CALL, json={"input": {}})
        text = await client.get("/v1/metrics")
        opened = await client.get("/v1/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert opened.headers["content-type"].startswith("application/openmetrics-text")
    assert 'gateway="gateway"' not in text.text  # its name
    read: Any = (read_text(text.text), read_open(opened.text))  # type: ignore[no-untyped-call]
    for found in map(samples_of, read):
        assert found["pilotlight_function_calls_total", "", "shop.hello", "ok"] == 3
        assert found["pilotlight_function_calls_total", "bad_input", "shop.hello", "error"] == 1
        assert found["pilotlight_function_duration_seconds_count", "shop.hello"] == 3
