"""What every request to a front passes before its call."""

from __future__ import annotations

import pytest

from tests.gateway.served_models import model
from tests.gateway.world import World

BODY = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1.5]}]}
FRONTS = [
    ("/v2/models/shop.double/infer", BODY),
    ("/v1/inference", {"model": "shop.double", "input": {"x": [1.5]}}),
]


@pytest.mark.parametrize(("path", "body"), FRONTS)
async def test_a_gateway_that_drains_takes_nothing(world: World, path: str, body: object) -> None:
    """As with every call."""
    world.deploy(model())
    await world.services.gate.drain(0.0)
    async with world.client() as client:
        answer = await client.post(path, json=body)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


@pytest.mark.parametrize(("path", "body"), FRONTS)
async def test_what_a_break_glass_key_tries_is_written(world: World, path: str, body: object) -> None:
    """It calls nothing, and the log knows that it wanted to."""
    world.deploy(model())
    key = world.add_key("acme", "operator", break_glass=True)
    async with world.client(key) as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 403
    assert {entry.code for entry in world.audit.records if entry.status == 403} == {"forbidden"}
    assert world.calls.seen == []


@pytest.mark.parametrize(("path", "body"), FRONTS)
async def test_a_failure_counts_once(world: World, path: str, body: object) -> None:
    """Under its code."""
    world.deploy(model())
    world.calls.output = b"\x93\x01"
    async with world.client() as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 500
    assert world.services.metrics.calls["error", "bad_output"] == 1
