"""Events that are there together are one piece, up to what a write takes and up to the first that is wrong."""

from __future__ import annotations

from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.http.calls.test_call_stream import EVENTS, PATH, chunks
from tests.gateway.world import World, events_of, function, generator


async def test_events_that_are_there_go_in_one_write(world: World) -> None:
    """In their order; what comes later goes when it comes."""
    world.deploy(function("g", generator()))
    world.calls.bunches = [list(chunks("a", "b", "c")), list(chunks("a", "b", "c", "d")[3:])]
    wire = Wire()
    await ask(world.app, wire, "POST", PATH, authorization=f"Bearer {world.key}", accept="text/event-stream")

    assert [message["body"].count(b"event: chunk") for message in wire.sent[1:]] == [3, 1, 0, 0]
    assert [data["value"] for name, data in events_of(wire.body.decode()) if name == "chunk"] == ["a", "b", "c", "d"]


async def test_what_comes_before_a_wrong_chunk_of_one_bunch_is_sent(world: World) -> None:
    """And nothing that comes behind it."""
    world.deploy(function("g", generator(output_schema={"type": "string"})))
    world.calls.bunches = [list(chunks("a", "b", 3, "d"))]
    async with world.client() as client:
        events = events_of((await client.post(PATH, headers=EVENTS)).text)

    assert [(name, data.get("value")) for name, data in events] == [("chunk", "a"), ("chunk", "b"), ("error", None)]


async def test_a_bunch_of_large_chunks_goes_in_pieces(world: World) -> None:
    """No write has more than the server's buffer takes, whatever the chunks become as JSON; a long one goes alone."""
    world.deploy(function("g", generator()))
    texts = ["\n" * 20_000, "b", "\n" * 20_000, "d", "e" * 200_000, "f"]
    world.calls.bunches = [list(chunks(*texts))]
    wire = Wire()
    await ask(world.app, wire, "POST", PATH, authorization=f"Bearer {world.key}", accept="text/event-stream")

    assert all(len(message["body"]) <= PIECE_BYTES for message in wire.sent[1:])
    assert [data["value"] for name, data in events_of(wire.body.decode()) if name == "chunk"] == texts
