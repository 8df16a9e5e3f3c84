"""What bounds functions is told to their owner, over HTTP."""

from __future__ import annotations

import pytest

from tests.gateway.world import World, function

CALL = "/v1/functions/shop.hello/calls"
DIAGNOSIS = "/v1/functions/shop.hello/diagnosis"


@pytest.fixture
def called(world: World) -> World:
    world.deploy(function("hello", slo=function().slo))
    return world


async def test_a_function_is_diagnosed_by_what_was_counted_of_its_calls(called: World) -> None:
    async with called.client() as client:
        for _ in range(40):
            assert (await client.post(CALL, json={"input": {"name": "Ada"}})).status_code == 200
        found = (await client.get(DIAGNOSIS)).json()

    assert found["function"] == "shop.hello@v1"
    assert found["calls"] == 40
    assert found["metrics"]["p95_ms"] > 0
    assert found["sentence"].endswith(".")
    assert found["silent"] == []


async def test_too_few_calls_say_nothing(called: World) -> None:
    async with called.client() as client:
        found = (await client.get(DIAGNOSIS, params={"window": "5m"})).json()

    assert found["name"] == "few"


async def test_a_wanted_rate_that_nobody_asks_for_is_the_callers_bound(called: World) -> None:
    async with called.client() as client:
        for _ in range(40):
            await client.post(CALL, json={"input": {"name": "Ada"}})
        found = (await client.get(DIAGNOSIS, params={"rate": "100000"})).json()

    assert found["trouble"] == "rate"


@pytest.mark.parametrize(
    ("params", "field"),
    [({"window": "ten"}, "window"), ({"window": "61m"}, "window"), ({"window": "0m"}, "window"),
     ({"rate": "-1"}, "rate"), ({"rate": "many"}, "rate")],
)  # fmt: skip
async def test_a_parameter_that_means_nothing_is_named(called: World, params: dict[str, str], field: str) -> None:
    async with called.client() as client:
        answer = await client.get(DIAGNOSIS, params=params)

    assert answer.status_code == 422
    assert answer.json()["field"] == field


async def test_functions_of_others_do_not_exist(called: World) -> None:
    async with called.client(called.operator) as client:
        answer = await client.get("/v1/functions/acme:shop.hello/diagnosis")

    assert answer.status_code == 404


async def test_each_function_that_had_calls_has_a_sentence(called: World) -> None:
    async with called.client() as client:
        for _ in range(3):
            await client.post(CALL, json={"input": {"name": "Ada"}})
        found = (await client.get("/v1/diagnoses")).json()

    assert [line["function"] for line in found["functions"]] == ["shop.hello@v1"]
    assert (found["left"], found["window_s"]) == (0, 600.0)
