"""The steps of a call of tensors: limits, money, errors and what is counted."""

from __future__ import annotations

import asyncio
import json

import pytest

from pilotlight_core.model.errors import FunctionRaised
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_gateway.http.inference.inference_counts import CountedModel
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.served_models import model
from tests.gateway.world import World
from tests.waiting import until

SMALL = EffectiveLimits(tenant=NO_LIMITS, function=Limits(payload_bytes=100))
INFER = "/v2/models/shop.double/infer"
BODY = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1.5]}]}


async def test_a_call_is_a_call_like_any_other(world: World) -> None:
    """It has an id, is in the metrics, and its answer names model and version."""
    world.deploy(model())
    async with world.client() as client:
        answer = await client.post(INFER, json=BODY)

    (call,) = world.calls.seen
    assert answer.status_code == 200
    assert answer.json() == {
        "model_name": "shop.double", "model_version": "1",
        "outputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.5]}],
    }  # fmt: skip
    assert answer.headers["pilotlight-call-id"] == answer.headers["x-request-id"] == call.call_id
    assert (call.tenant, call.key) == ("acme", world.key.id)
    assert world.services.metrics.calls["ok", ""] == 1


async def test_a_function_that_fails_is_counted(world: World) -> None:
    """Its error is the text; another tenant's is not told."""
    world.deploy(model())
    world.calls.error = FunctionRaised("It broke.", traceback="of ours")
    parts = world.services.parts()
    async with world.client() as client:
        answer = await client.post(INFER, json=BODY)

    assert (answer.status_code, answer.json()) == (500, {"error": "It broke."})
    assert world.services.metrics.calls["error", "function_raised"] == 1
    assert parts.counts.of_model(CountedModel("acme", "shop.double", "1")).failed == 0  # of another application


async def test_limits_hold_for_models_too(world: World) -> None:
    """The payload's here; rates are asked of the same limiter as any call's."""
    world.deploy(model())
    world.services.limits = MemoryLimiter(lambda *_: policy_of(SMALL, "acme:shop.double"))
    long = BODY | {"id": "x" * 200}
    async with world.client() as client:
        answer = await client.post(INFER, json=long)
    assert (answer.status_code, world.calls.seen) == (413, [])


async def test_a_caller_that_leaves_cancels_its_call(world: World) -> None:
    """And frees what it held."""
    world.deploy(model())
    world.calls.hold = asyncio.Event()
    wire = Wire([json.dumps(BODY).encode()])
    asking = asyncio.ensure_future(ask(world.app, wire, "POST", INFER, authorization=f"Bearer {world.key}"))
    await until(lambda: bool(world.calls.seen))
    wire.gone.set()
    await asking

    assert world.calls.cancelled == [world.calls.seen[0].call_id]
    assert (len(world.services.gate), world.services.budget.used) == (0, 0)


@pytest.mark.parametrize("length", ["x", "0", "99999", "-1", "9" * 30])
async def test_the_length_of_the_json_is_within_the_body(world: World, length: str) -> None:
    """Else nothing is read."""
    world.deploy(model())
    async with world.client() as client:
        answer = await client.post(INFER, json=BODY, headers={"inference-header-content-length": length})
    assert answer.status_code == 400
    assert "how many of the body's" in answer.json()["error"]
