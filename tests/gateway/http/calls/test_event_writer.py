"""Events that are there together are one piece, up to what a write takes and up to the first that is wrong."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_gateway.http.calls.event_writer import TAKEN_BYTES
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


class Served:
    """A server whose client reads up to so many pieces at once, behind the head."""

    def __init__(self, wire: Wire, most: int = 100) -> None:
        self.loop = asyncio.get_running_loop()
        self.left = most
        self._wire = wire
        wire.served = self

    @property
    def takes_pieces(self) -> bool:
        return bool(self._wire.sent) and self.left > 0

    def mark_known(self) -> None:
        pass

    def take_body(self) -> bytes | None:
        return None

    def send_whole(self, *_: object) -> bool:
        return False

    def send_piece(self, piece: bytes) -> bool:
        takes = self.takes_pieces
        if takes:
            self.left -= 1
            self._wire.sent.append({"type": "http.response.body", "body": piece})
        return takes


@pytest.mark.parametrize("query", ["", "?values=msgpack"])
async def test_chunks_are_written_as_they_come_behind_the_first_one(world: World, query: str) -> None:
    """Those that are long or wrong by the call's task, which has written all before; the bytes are the same."""
    world.deploy(function("g", generator(output_schema={"type": "string"})))
    world.calls.events = chunks("a", "b", "c" * TAKEN_BYTES, "d", 5, "e")
    served, by_itself = Wire(), Wire()
    Served(served)
    for wire in (served, by_itself):
        await ask(world.app, wire, "POST", PATH + query, authorization=f"Bearer {world.key}", accept=EVENTS["accept"])
        assert world.calls.taken == [2, 4]

    told, same = events_of(served.body.decode()), events_of(by_itself.body.decode())
    assert [name for name, _ in told] == ["chunk"] * 4 + ["error"]
    assert told[:4] == same[:4]


async def test_what_the_client_has_to_read_for_waits_in_its_task(world: World) -> None:
    """Nothing is lost, nor out of order."""
    world.deploy(function("g", generator()))
    world.calls.events = chunks("a", "b", "c", "d")
    wire = Wire()
    served = Served(wire, most=1)
    await ask(world.app, wire, "POST", PATH, authorization=f"Bearer {world.key}", accept="text/event-stream")

    assert (world.calls.taken, served.left) == ([2], 0)
    assert [data["value"] for name, data in events_of(wire.body.decode()) if name == "chunk"] == ["a", "b", "c", "d"]
