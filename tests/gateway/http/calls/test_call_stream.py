"""A call as events: in order, ended by its result or by what went wrong, and cancelled with its caller."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator

import msgspec
import pytest
from structlog.testing import capture_logs

from pilotlight_core.model.errors import FunctionRaised, TooMuch
from pilotlight_core.model.spec import MethodSpec
from pilotlight_gateway.calls.call_port import ChunkEvent, StageEvent
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, events_of, function, generator, packed
from tests.waiting import until

PATH = "/v1/functions/shop.g/calls"
EVENTS = {"accept": "text/event-stream"}


def chunks(*values: object) -> list[ChunkEvent]:
    return [ChunkEvent(seq=number, data=data) for number, data in enumerate(packed(*values), 1)]


async def test_stages_chunks_and_the_result_come_in_order(world: World) -> None:
    """With the head of an event stream; a generator's result has no output of its own."""
    world.deploy(function("g", generator()))
    world.calls.events = [StageEvent(name="queued", ms=0.1), *chunks({"text": "a\nb"}, "c")]
    async with world.client() as client:
        answer = await client.post(PATH, headers=EVENTS)

    events = events_of(answer.text)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["pilotlight-call-id"].startswith("call_")
    assert events[:3] == [
        ("stage", {"name": "queued", "ms": 0.1, "detail": {}}),
        ("chunk", {"seq": 1, "value": {"text": "a\nb"}}),
        ("chunk", {"seq": 2, "value": "c"}),
    ]
    name, result = events[3]
    assert (name, result["output"], result["version"], len(events)) == ("result", None, "shop.g@v1", 4)
    assert sum(world.services.metrics.first_chunk.counts) == 1
    assert world.calls.seen[0].stream


async def test_values_can_travel_as_msgpack(world: World) -> None:
    """For clients that want bytes and arrays back: base64 of msgpack, for chunks and for a result."""
    world.deploy(function("g", generator()), function("f", MethodSpec(name="", attribute="f")))
    world.calls.events = [*chunks(b"\xff")]
    async with world.client() as client:
        generated = events_of((await client.post(f"{PATH}?values=msgpack", headers=EVENTS)).text)
        world.calls.events = []
        world.calls.output = msgspec.msgpack.encode(b"\x00")
        path = "/v1/functions/shop.f/calls?values=msgpack"
        (result,) = events_of((await client.post(path, headers=EVENTS)).text)

    assert msgspec.msgpack.decode(base64.b64decode(generated[0][1]["value_b64"])) == b"\xff"
    assert "output_b64" not in generated[1][1] or generated[1][1]["output_b64"] is None
    assert msgspec.msgpack.decode(base64.b64decode(result[1]["output_b64"])) == b"\x00"
    assert result[1]["output"] is None


async def test_what_fails_before_the_first_event_has_a_status_of_its_own(world: World) -> None:
    """A full queue is 429, not a stream that ends badly."""
    world.deploy(function("g", generator()))
    world.calls.error = TooMuch("Full.", code="queue_full", retry_after=3.0)
    async with world.client() as client:
        answer = await client.post(PATH, headers=EVENTS)

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    assert world.services.metrics.calls["error", "queue_full"] == 1


async def test_what_fails_later_is_the_last_event(world: World) -> None:
    """An error event with the problem document; the stream then ends in order."""
    world.deploy(function("g", generator()))
    world.calls.events = [*chunks("a")]
    world.calls.error = FunctionRaised("ValueError: no", traceback="Traceback…")
    with capture_logs() as logs:
        async with world.client() as client:
            answer = await client.post(PATH, headers=EVENTS)

    (_, _), (name, problem) = events_of(answer.text)
    assert answer.status_code == 200
    assert (name, problem["code"], problem["traceback"]) == ("error", "function_raised", "Traceback…")
    assert problem["request_id"] == answer.headers["x-request-id"] == answer.headers["pilotlight-call-id"]
    (line,) = [entry for entry in logs if entry["event"] == "a request failed"]
    assert (line["request_id"], line["code"], line["tenant"]) == (problem["request_id"], "function_raised", "acme")
    assert world.services.metrics.calls["error", "function_raised"] == 1


async def test_an_unexpected_error_is_an_event_too(world: World) -> None:
    """`internal`, without details: a stream that just stopped would look like success."""
    world.deploy(function("g", generator()))
    world.calls.events = [*chunks("a")]
    world.calls.error = ValueError("secret")
    async with world.client() as client:
        answer = await client.post(PATH, headers=EVENTS)

    assert events_of(answer.text)[-1][1]["code"] == "internal"
    assert "secret" not in answer.text


async def test_a_chunk_that_breaks_its_promise_ends_the_stream(world: World) -> None:
    """The call is cancelled, and the caller hears why."""
    world.deploy(function("g", generator(output_schema={"type": "string"})))
    world.calls.events = [*chunks("a", 2, "c")]
    async with world.client() as client:
        events = events_of((await client.post(PATH, headers=EVENTS)).text)

    assert [(name, data.get("code")) for name, data in events] == [("chunk", None), ("error", "bad_output")]
    assert world.calls.cancelled == [world.calls.seen[0].call_id]


async def test_a_reader_that_leaves_cancels_the_call(world: World) -> None:
    """Hanging up between two chunks closes the iterator."""
    world.deploy(function("g", generator()))
    world.calls.events = [*chunks("a")]
    world.calls.hold = asyncio.Event()
    wire = Wire()
    asking = asyncio.create_task(
        ask(world.app, wire, "POST", PATH, authorization=f"Bearer {world.key}", accept="text/event-stream")
    )
    await until(lambda: len(wire.sent) >= 2)

    wire.gone.set()
    await asking

    assert world.calls.cancelled == [world.calls.seen[0].call_id]
    assert len(world.services.gate) == 0


async def test_a_reader_that_does_not_read_holds_the_call_back(world: World) -> None:
    """Chunks are fetched as fast as they are read, so at most one is on its way."""
    world.deploy(function("g", generator()))
    fetched = []

    class Counting(list[ChunkEvent]):
        def __iter__(self) -> Iterator[ChunkEvent]:
            for chunk in super().__iter__():
                fetched.append(chunk.seq)
                yield chunk

    world.calls.events = Counting(chunks(*range(100)))
    wire = Wire(reads=False)
    asking = asyncio.create_task(
        ask(world.app, wire, "POST", PATH, authorization=f"Bearer {world.key}", accept="text/event-stream")
    )
    await until(lambda: len(wire.sent) >= 2)

    assert fetched == [1]
    wire.gone.set()
    await asking
    assert fetched == [1]


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_shutdown_ends_streams_with_a_reason(world: World, has_begun: bool) -> None:
    """`draining` as status before the first event, as the last event after it."""
    world.deploy(function("g", generator()))
    world.calls.events = [*chunks("a")] if has_begun else []
    world.calls.hold = asyncio.Event()
    wire = Wire()
    asking = asyncio.create_task(
        ask(world.app, wire, "POST", PATH, authorization=f"Bearer {world.key}", accept="text/event-stream")
    )
    await until(lambda: world.calls.seen and (not has_begun or len(wire.sent) >= 2))

    assert not await world.services.gate.drain(0.0)
    assert await world.services.gate.abort(1.0) == 1
    await asking

    if has_begun:
        assert events_of(wire.body.decode())[-1][1]["code"] == "draining"
    else:
        assert (wire.status, wire.json["code"]) == (503, "draining")
