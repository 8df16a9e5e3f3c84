"""A gateway ends without cutting off whoever can be served in time."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.http.protocol.drain_gate import DrainGate, current_task
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, function
from tests.waiting import until

CALL = "/v1/functions/shop.hello/calls"


def call(world: World, wire: Wire) -> asyncio.Task[Wire]:
    return asyncio.create_task(ask(world.app, wire, "POST", CALL, authorization=f"Bearer {world.key}"))


async def test_calls_inside_finish_and_new_ones_are_turned_away(world: World) -> None:
    """503 `draining` with a time to come back, also from /readyz, while the old call gets its answer."""
    world.deploy(function())
    world.calls.hold = asyncio.Event()
    wire = Wire(pieces=[b'{"input": {"name": "x"}}'])
    first = call(world, wire)
    await until(lambda: world.calls.seen)
    draining = asyncio.create_task(world.services.gate.drain(5.0))
    await until(lambda: world.services.gate.draining)

    async with world.client() as client:
        for answer in (await client.post(CALL, json={}), await client.get("/readyz")):
            assert (answer.status_code, answer.json()["code"]) == (503, "draining")
            assert "retry-after" in answer.headers
        assert (await client.get("/healthz")).status_code == 200
    world.calls.hold.set()

    assert (await first).status == 200
    assert await draining


async def test_those_who_stay_too_long_hear_why(world: World) -> None:
    """An aborted call answers 503 `draining`; its work is cancelled."""
    world.deploy(function())
    world.calls.hold = asyncio.Event()
    wire = Wire(pieces=[b'{"input": {"name": "x"}}'])
    inside = call(world, wire)
    await until(lambda: world.calls.seen)

    assert not await world.services.gate.drain(0.0)
    assert await world.services.gate.abort(1.0) == 1

    assert ((await inside).status, wire.json["code"]) == (503, "draining")
    assert world.calls.cancelled == [world.calls.seen[0].call_id]


async def test_an_empty_gate_drains_at_once() -> None:
    """There is nobody to wait for."""
    gate = DrainGate()

    assert await gate.drain(0.0)
    with pytest.raises(Unavailable):
        gate.enter(current_task())


async def test_somebody_elses_cancellation_stays_one() -> None:
    """Only `abort` is turned into an answer."""
    gate = DrainGate()
    entered = asyncio.Event()

    async def stay() -> None:
        with gate.around(current_task()):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(stay())
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(gate) == 0
