"""Streams: bounded, in order, and ended by a client that does not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilotlight_core.model.errors import DeadlineExceeded, TooMuch
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.front_wiring import stream_slots
from pilotlight_gateway.grpc_front import infer_stream
from pilotlight_gateway.grpc_front.infer_messages import message_class
from pilotlight_gateway.grpc_front.infer_stream import AT_A_TIME, InferStream
from pilotlight_gateway.grpc_front.model_answers import GrpcServices, ModelAnswers
from pilotlight_gateway.http_wiring import wire_models
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from pilotlight_gateway.limits.tenant_slots import TenantSlots
from tests.gateway.served_models import model
from tests.gateway.world import World
from tests.waiting import until

RESPONSE = message_class("ModelStreamInferResponse")


class Wire:
    """Both ends of a stream: what is sent, and what was read."""

    def __init__(self, *requests: bytes) -> None:
        self.left = list(requests)
        self.read = 0
        self.told: list[Any] = []
        self.reads = True

    async def requests(self) -> AsyncIterator[bytes]:
        for request in self.left:
            self.read += 1
            yield request

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return ()

    async def write(self, data: bytes) -> None:
        if not self.reads:
            await asyncio.Event().wait()
        self.told.append(RESPONSE.FromString(data))


async def stream(world: World, wire: Wire, slots: TenantSlots | None = None) -> InferStream:
    parts = world.services.parts()
    services = GrpcServices(
        models=wire_models(parts), rates=parts.rates, requests=parts.requests, streams=slots or stream_slots(),
        clock=parts.readiness.clock,
    )  # fmt: skip
    principal = await world.services.authenticator.authenticate(f"Bearer {world.key}".encode())
    return InferStream(services, ModelAnswers(services), principal, wire)


def request(client_id: str, name: str = "shop.double") -> bytes:
    made = message_class("ModelInferRequest")(model_name=name, id=client_id, raw_input_contents=[b"\1"])
    made.inputs.add(name="x", datatype="INT8", shape=[1])
    data: bytes = made.SerializeToString()
    return data


async def test_a_stream_goes_on_after_what_was_wrong(world: World) -> None:
    """What is no message, no model, or fails, is answered by its id."""
    world.deploy(model())
    wire = Wire(request("a"), b"\xff\xff", request("b", "shop.none"), request("c"))
    await (await stream(world, wire)).serve(wire.requests())

    answered = {told.infer_response.id: told.error_message for told in wire.told}
    assert answered["a"] == answered["c"] == ""
    assert "no ModelInferRequest" in answered[""]
    assert "(unknown_function)" in answered["b"]
    assert (len(world.services.gate), len(world.services.requests), world.services.budget.used) == (0, 0, 0)


async def test_requests_of_a_stream_are_read_as_others_end(world: World) -> None:
    """So that a client holds only so many."""
    world.deploy(model())
    world.calls.hold = asyncio.Event()
    wire = Wire(*(request(str(number)) for number in range(AT_A_TIME + 5)))
    serving = asyncio.ensure_future((await stream(world, wire)).serve(wire.requests()))
    await until(lambda: len(world.calls.seen) == AT_A_TIME)
    assert wire.read == AT_A_TIME  # nothing is read ahead
    world.calls.hold.set()
    await serving
    assert len(wire.told) == AT_A_TIME + 5


async def test_large_requests_of_a_stream_are_read_as_others_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their bytes: what runs is counted for their tenant, and what is not read is in nobody's memory."""
    monkeypatch.setattr(infer_stream, "HELD_BYTES", 2 * len(request("0")))
    world.deploy(model())
    world.calls.hold = asyncio.Event()
    wire = Wire(*(request(str(number)) for number in range(5)))
    serving = asyncio.ensure_future((await stream(world, wire)).serve(wire.requests()))
    await until(lambda: len(world.calls.seen) == 2)
    assert (wire.read, world.services.budget.used) == (2, 2 * len(request("0")))
    world.calls.hold.set()
    await serving
    assert [told.infer_response.id for told in wire.told] == ["0", "1", "2", "3", "4"]
    assert world.services.budget.used == 0


async def test_what_a_stream_sends_counts_as_calls_do(world: World) -> None:
    """Each request under its tenant's rate, and what is no request as one to the API."""
    world.deploy(model())
    limits = Limits(requests_per_s=0.001, burst=2, api_requests_per_s=0.001)
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=limits)
    world.services.limits = MemoryLimiter(LimitPolicies(world.registry.limits))
    wire = Wire(request("a"), request("b"), request("c"), b"\xff\xff", b"\xff\xff")
    await (await stream(world, wire)).serve(wire.requests())

    said = [(told.infer_response.id, told.error_message) for told in wire.told]
    assert [name for name, error in said if not error] == ["a", "b"]
    assert "requests_per_s" in dict(said)["c"] or "calls a second" in dict(said)["c"]
    wrong = [error for name, error in said if not name]
    assert "no ModelInferRequest" in wrong[0]
    assert "api_requests_per_s" in wrong[1]


async def test_a_client_that_reads_nothing_is_gone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls end with its stream."""
    monkeypatch.setattr(infer_stream, "STUCK_S", 0.01)
    world.deploy(model())
    wire = Wire(request("a"))
    wire.reads = False
    with pytest.raises(DeadlineExceeded, match="has read nothing"):
        await (await stream(world, wire)).serve(wire.requests())
    assert len(world.services.gate) == 0


async def test_a_tenant_has_so_many_streams(world: World) -> None:
    """The next one is refused."""
    wire, slots = Wire(), TenantSlots(2, "streams", of_tenant=1, retry_after=1.0)
    one = await stream(world, wire, slots)
    with slots.slot("acme"), pytest.raises(TooMuch):
        await one.serve(wire.requests())


async def test_a_revoked_key_ends_its_stream(world: World) -> None:
    """With the reason."""
    from pilotlight_core.model.errors import Unauthenticated

    world.deploy(model())
    world.calls.hold = asyncio.Event()
    wire = Wire(request("a"))
    serving = asyncio.ensure_future((await stream(world, wire)).serve(wire.requests()))
    await until(lambda: bool(world.calls.seen))
    assert world.services.requests.end_revoked(lambda _: Unauthenticated("It was revoked.")) == 2
    with pytest.raises(Unauthenticated, match="It was revoked"):
        await serving
    assert len(world.services.gate) == len(world.services.requests) == 0
