"""Streams show life, and notice when nobody is there."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, KeepAlive, event, relay
from pilotlight_gateway.http.protocol.http_exchange import SERVED, ClientGone, Exchange
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from tests.gateway.http.asgi import Wire
from tests.waiting import until

HURRIED = KeepAlive(head_within=0.001, keepalive=0.002, stuck=0.006)


def test_an_event_is_written_as_clients_read_it() -> None:
    """No id and no retry line: they break stock clients."""
    assert event(b"chunk", b"{}") == b"event: chunk\ndata: {}\n\n"


async def test_a_silent_stream_sends_its_head_and_then_signs_of_life() -> None:
    """The head soon, then comments."""
    wire = Wire(pieces=())

    async def wait_for_life() -> None:
        await until(lambda: wire.body.count(b": keepalive\n\n") >= 2)

    stream = EventStream(Exchange({}, wire.send, 0.0), HEADERS, pace=HURRIED)
    await relay(stream, wire.receive, wait_for_life)
    await stream.finish()

    assert wire.status == 200
    assert wire.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


class Served:
    """A server that sends pieces at once while its client reads."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.reads = True
        self.pieces: list[bytes] = []

    @property
    def takes_pieces(self) -> bool:
        return self.reads

    def send_piece(self, piece: bytes) -> bool:
        if self.reads:
            self.pieces.append(piece)
        return self.reads


async def test_pieces_are_sent_at_once_while_the_client_reads() -> None:
    """Else as fast as it does, and so are those that are too large to be sent at once."""
    wire, served = Wire(pieces=()), Served()
    stream = EventStream(Exchange({SERVED: served}, wire.send, 0.0), HEADERS)
    await stream.send(b"one")
    served.reads = False
    await stream.send(b"two")
    served.reads = True
    await stream.send(bytes(PIECE_BYTES + 1))

    assert served.pieces == [b"one"]
    assert wire.body == b"two" + bytes(PIECE_BYTES + 1)


async def test_what_needs_no_task_is_sent_now_or_not_at_all() -> None:
    """While the client reads, and nothing else is being sent."""
    wire, served = Wire(pieces=(), reads=False), Served()
    exchange = Exchange({SERVED: served}, wire.send, 0.0)
    stream = EventStream(exchange, HEADERS)

    def is_ready() -> bool:
        return exchange.takes_pieces

    assert is_ready()
    assert exchange.send_piece(b"one")
    served.reads = False
    assert not is_ready()
    assert not exchange.send_piece(b"two")
    sending = asyncio.ensure_future(stream.send(b"three"))
    await asyncio.sleep(0)
    served.reads = True
    assert not is_ready()
    assert not exchange.send_piece(b"four")
    sending.cancel()
    await asyncio.wait([sending])

    assert served.pieces == [b"one"]


async def test_a_client_that_reads_nothing_is_taken_for_gone() -> None:
    """After a while, so that it cannot hold a container for ever."""
    wire = Wire(pieces=(), reads=False)
    stream = EventStream(Exchange({}, wire.send, 0.0), HEADERS, pace=HURRIED)

    with pytest.raises(ClientGone):
        await relay(stream, wire.receive, lambda: stream.send(b"x"))


async def test_what_goes_wrong_comes_out_as_it_is() -> None:
    """Not wrapped in a group."""

    async def fail() -> None:
        raise KeyError("x")

    wire = Wire(pieces=())
    with pytest.raises(KeyError):
        await relay(EventStream(Exchange({}, wire.send, 0.0), HEADERS), wire.receive, fail)
