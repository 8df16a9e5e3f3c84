"""One request for tensors over gRPC: its limits, its deadline, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput, Unauthenticated
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.spec import Mode
from pilotlight_gateway.front_wiring import stream_slots
from pilotlight_gateway.grpc_front.infer_messages import message_class
from pilotlight_gateway.grpc_front.model_answers import GrpcServices, ModelAnswer, ModelAnswers
from pilotlight_gateway.http_wiring import wire_models
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.builders.specs import method
from tests.gateway.served_models import model
from tests.gateway.world import World, function
from tests.waiting import until

SMALL = EffectiveLimits(tenant=NO_LIMITS, function=Limits(payload_bytes=100))


def request(**more: Any) -> bytes:
    made = message_class("ModelInferRequest")(model_name="shop.double", raw_input_contents=[b"\1"], **more)
    made.inputs.add(name="x", datatype="INT8", shape=[1])
    data: bytes = made.SerializeToString()
    return data


async def run(world: World, data: bytes, **options: Any) -> list[ModelAnswer]:
    parts = world.services.parts()
    services = GrpcServices(
        models=wire_models(parts), rates=parts.rates, requests=parts.requests, streams=stream_slots(),
        clock=parts.readiness.clock,
    )  # fmt: skip
    answers = ModelAnswers(services)
    principal = await world.services.authenticator.authenticate(f"Bearer {world.key}".encode())
    with answers.opened(principal) as opened:
        return [answer async for answer in answers.run(opened, data, **options)]


async def test_an_answer_and_then_no_more(world: World) -> None:
    """The client's deadline is the call's."""
    world.deploy(model())
    one, end = await run(world, request(id="a"), left_s=3.0)
    assert one.tensors is not None
    assert (one.client_id, one.tensors[0].data, end.tensors) == ("a", b"\1", None)
    (call,) = world.calls.seen
    assert call.deadline_at - call.arrived_at <= 3.0


async def test_what_is_refused_runs_nothing(world: World) -> None:
    """A body over its limit, a generator for a client of one answer, and what is no request."""
    world.deploy(model(), function("tokens", method(attribute="tokens", mode=Mode.GENERATOR)))
    world.services.limits = MemoryLimiter(lambda *_: policy_of(SMALL, "acme:shop.double"))
    stream = message_class("ModelInferRequest")(model_name="shop.tokens").SerializeToString()
    for data, options, code in (
        (request(id="x" * 200), {}, "too_large"), (b"\xff", {}, "bad_request"),
        (stream, {"only_one": True}, "bad_input"),
    ):  # fmt: skip
        with pytest.raises(BadInput) as refused:
            await run(world, data, **options)
        assert refused.value.wire_code == code
    assert world.calls.seen == []
    assert world.services.metrics.calls["error", "too_large"] == 1


@pytest.mark.parametrize("is_revoked", [False, True])
async def test_a_call_that_is_cancelled_is_inside_no_more(world: World, is_revoked: bool) -> None:
    """Its client hung up, or its key was revoked."""
    world.deploy(model())
    world.calls.hold = asyncio.Event()
    running = asyncio.ensure_future(run(world, request()))
    await until(lambda: bool(world.calls.seen))
    if is_revoked:
        world.services.requests.end_revoked(lambda _: Unauthenticated("It was revoked."))
    else:
        running.cancel()
    with pytest.raises((asyncio.CancelledError, Unauthenticated)):
        await running
    tallies = world.services.recorder.tallies
    tallies.fold()
    (known,) = tallies.each()
    counts = known.counts
    assert (counts.arrivals, counts.inside, counts.gone, sum(counts.failures.values())) == (
        1, 0, not is_revoked, is_revoked,
    )  # fmt: skip
