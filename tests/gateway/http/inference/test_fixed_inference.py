"""The fixed inference API."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import FunctionRaised
from pilotlight_core.model.spec import Mode
from pilotlight_gateway.calls.call_port import CallResult, ChunkEvent
from tests.builders.specs import method
from tests.gateway.served_models import model
from tests.gateway.world import World, function, packed

TEXT = {"type": "string"}
CALL = "call_local_1_00000000000000000001"


async def ask(world: World, **body: Any) -> Any:
    async with world.client() as client:
        return await client.post("/v1/inference", json={"model": "shop.double"} | body)


async def test_a_request_has_its_output_and_what_it_took(world: World) -> None:
    """Tokens as the function counted them."""
    world.deploy(model(prompt=TEXT))
    run = world.calls.run

    async def counted(call: Any) -> CallResult:
        units = {"prompt_tokens": 3, "completion_tokens": 4, "cached_tokens": 2}
        return msgspec.structs.replace(await run(call), units=units)

    world.calls.run = counted  # type: ignore[method-assign]
    answer = await ask(world, input="Hello")
    assert answer.status_code == 200
    body = answer.json()
    assert body["request_id"] == answer.headers["pilotlight-call-id"]
    assert body["output"] == {"prompt": "Hello"}
    assert body["metadata"]["tokens_used"] == 7
    assert body["metadata"]["model_version"] == "shop.double@v1"
    assert body["metadata"]["latency_ms"] > 0
    assert world.services.metrics.calls["ok", ""] == 1


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ({"input": "a", "parameters": {"n": 2}}, {"prompt": "a", "n": 2}),
        ({"input": {"prompt": "a", "n": 2}}, {"prompt": "a", "n": 2}),
        ({"input": {"prompt": "a"}, "parameters": {"n": 2}}, {"prompt": "a", "n": 2}),
    ],
)
async def test_input_is_the_arguments_or_the_first_one(
    world: World, body: dict[str, Any], arguments: dict[str, Any]
) -> None:
    """An object of the function's names is all of them."""
    world.deploy(model(prompt=TEXT, n={"type": "integer"}))
    assert (await ask(world, **body)).json()["output"] == arguments


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"input": {"other": 1}}, 422, "prompt"),
        ({"input": "a", "parameters": {"prompt": "b"}}, 422, "both"),
        ({"input": "a", "parameters": {"temperature": 1}}, 422, "temperature"),
        ({"input": "a", "stream": True}, 422, "stream"),
        ({}, 422, "input"),
        ({"input": "a", "model": "shop.none"}, 404, "no function"),
        ({"input": "x" * 2**20}, 413, "larger"),
    ],
)
async def test_what_is_wrong_is_named(world: World, body: dict[str, Any], status: int, why: str) -> None:
    """As in every native error."""
    world.deploy(model(prompt=TEXT))
    answer = await ask(world, **body)
    assert answer.status_code == status
    assert why in answer.json()["detail"]
    assert world.calls.seen == []


async def test_a_function_without_parameters_takes_an_empty_input(world: World) -> None:
    """Anything else is refused; without a schema an object is the arguments."""
    world.deploy(
        function("double", method(attribute="double", input_schema={"type": "object", "properties": {}})),
        function("free", method(attribute="free")),
    )
    assert (await ask(world, input={})).status_code == 200
    assert "takes no parameters" in (await ask(world, input=1)).json()["detail"]
    assert (await ask(world, model="shop.free", input={"a": 1})).json()["output"] == {"a": 1}


async def test_a_generator_answers_the_list_of_its_chunks(world: World) -> None:
    """And a large output comes whole."""
    world.deploy(function("double", method(attribute="double", mode=Mode.GENERATOR)))
    one, two = packed("a", "x" * 100_000)
    world.calls.events = [ChunkEvent(seq=1, data=one), ChunkEvent(seq=2, data=two)]
    assert (await ask(world, input={})).json()["output"] == ["a", "x" * 100_000]


async def test_a_failure_is_an_error_with_the_requests_id(world: World) -> None:
    """By which it is asked for."""
    world.deploy(model(prompt=TEXT))
    world.calls.error = FunctionRaised("It broke.")
    answer = await ask(world, input="a")
    assert (answer.status_code, answer.json()["code"]) == (500, "function_raised")
    assert answer.json()["request_id"] == world.calls.seen[0].call_id


async def test_a_request_is_asked_for_by_its_tenant(world: World) -> None:
    """Another's is unknown, as what is no id is."""
    world.calls.statuses["acme", CALL] = CallStatus(id=CALL, state="running", version="shop.double@v1", age_ms=5.0)
    async with world.client() as client:
        mine = await client.get(f"/internal/requests/{CALL}")
        none = await client.get("/internal/requests/7")
    async with world.client(world.add_key("beta", "admin")) as client:
        theirs = await client.get(f"/internal/requests/{CALL}")
    assert mine.json() == {
        "request_id": CALL, "status": "running", "model_version": "shop.double@v1", "age_ms": 5.0, "error": None
    }  # fmt: skip
    assert (none.status_code, theirs.status_code) == (404, 404)


async def test_health_is_that_of_the_gateway(world: World) -> None:
    """Without a key."""
    async with world.client("") as client:
        assert (await client.get("/internal/health")).json() == {"status": "healthy"}
        world.calls.not_ready = "no home lease"
    async with world.client("") as client:
        assert (await client.get("/internal/health")).status_code == 503
