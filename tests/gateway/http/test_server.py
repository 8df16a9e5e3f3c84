"""Connections are bounded: real sockets, hostile and friendly clients."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from pilotlight_core.model import values
from pilotlight_gateway.calls.call_port import ChunkEvent
from pilotlight_gateway.http import server
from pilotlight_gateway.http.listening_socket import listen
from pilotlight_gateway.http.quiet_server import QuietServer
from pilotlight_gateway.http.server import (
    HEAD_BYTES,
    PIPELINED,
    BoundedProtocol,
    make_server,
)
from pilotlight_gateway.limits.connections import ConnectionBook, ConnectionBounds
from tests.gateway.world import World, function, generator
from tests.waiting import until

CALL = b"POST /v1/functions/shop.hello/calls HTTP/1.1\r\nhost: x\r\n"


class Hurried(BoundedProtocol):
    """With bounds that a test can wait for."""

    head_seconds = 0.05
    linger_seconds = 0.05


class Restless(BoundedProtocol):
    """Does not rest for long."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive = 0.3  # type: ignore[assignment] # uvicorn says whole seconds


@asynccontextmanager
async def serving(
    world: World, protocol: type[BoundedProtocol] = BoundedProtocol, bounds: ConnectionBounds | None = None
) -> AsyncIterator[tuple[str, int]]:
    book = ConnectionBook(bounds or ConnectionBounds())
    async with world.services.workers.running(), serving_app(world.app, book, protocol) as (address, _):
        yield address


@asynccontextmanager
async def serving_app(
    app: ASGIApp, book: ConnectionBook, protocol: type[BoundedProtocol]
) -> AsyncIterator[tuple[tuple[str, int], QuietServer]]:
    listening = listen("127.0.0.1", 0)
    running = make_server(app, book=book, graceful_seconds=1, protocol=protocol)
    async with asyncio.TaskGroup() as group:
        group.create_task(running.serve(sockets=[listening]))
        await until(lambda: running.started)
        yield listening.getsockname()[:2], running
        running.stop()


async def test_calls_are_answered_over_real_connections(world: World) -> None:
    """Several on one connection, and one with ten megabytes."""
    world.deploy(function())
    async with serving(world) as (host, port):
        headers = {"authorization": f"Bearer {world.key}"}
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers) as client:
            for name in ("x", "y", "x" * 10**7):
                answer = await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": name}})
                assert answer.json()["output"] == {"name": name}
            assert "server" not in answer.headers


async def test_a_stream_is_read_over_a_real_connection(world: World) -> None:
    """However many pieces it has, and whatever their size; the connection serves the next request."""
    world.deploy(function("hello", generator()))
    world.calls.bunches = [[ChunkEvent(seq=seq, data=values.encode("x" * seq**3))] for seq in range(1, 60)]
    async with serving(world) as (host, port):
        headers = {"authorization": f"Bearer {world.key}", "accept": "text/event-stream"}
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers) as client:
            for _ in range(2):
                answer = await client.post("/v1/functions/shop.hello/calls", json={"input": {}})
                lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
                assert lines[:-1] == [f'data: {{"seq":{seq},"value":"{"x" * seq**3}"}}' for seq in range(1, 60)]


def whole_call(world: World) -> bytes:
    """A call as one piece."""
    body = b'{"input": {"name": "x"}}'
    request = b"%sauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n%s"
    return request % (CALL, str(world.key).encode(), len(body), body)


async def read_answer(reader: asyncio.StreamReader) -> None:
    """The whole answer of a call that succeeded."""
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
    assert head.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("pieces", [1, 2], ids=["whole", "in pieces"])
async def test_answers_end_their_connections_once_the_end_is_announced(world: World, pieces: int) -> None:
    """Also that of a request that was under way; requests on connections that rested meanwhile are answered too."""
    world.deploy(function())
    whole, book = whole_call(world), ConnectionBook(ConnectionBounds())
    async with (
        asyncio.timeout(30),
        world.services.workers.running(),
        serving_app(world.app, book, BoundedProtocol) as (address, running),
    ):
        busy, resting = [await asyncio.open_connection(*address) for _ in range(2)]
        for reader, writer in (busy, resting):
            writer.write(whole)
            await read_answer(reader)
        world.calls.hold, seen = asyncio.Event(), len(world.calls.seen)
        busy[1].write(whole)
        await until(lambda: len(world.calls.seen) > seen)

        running.end_connections()

        world.calls.hold.set()
        for part in (whole[:-3], whole[-3:]) if pieces == 2 else (whole,):
            resting[1].write(part)
            await resting[1].drain()
        for reader, writer in (busy, resting):
            answer = await reader.read()  # to the end of the connection
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.lower().count(b"\r\nconnection: close\r\n") == 1
            writer.close()


async def test_a_connection_is_closed_when_it_has_rested_and_not_while_it_works(world: World) -> None:
    """Its timer is not set anew for each request: one that finds work under way leaves it alone."""
    world.deploy(function())
    whole = whole_call(world)
    async with asyncio.timeout(30), serving(world, Restless) as address:
        reader, writer = await asyncio.open_connection(*address)
        for seconds in (0.0, 0.7):
            world.calls.hold = asyncio.Event()
            asyncio.get_running_loop().call_later(seconds, world.calls.hold.set)
            writer.write(whole)
            await read_answer(reader)
        writer.write(b"\r\n")  # allowed between requests, and no reason to stay
        assert await reader.read() == b""
        writer.close()


async def test_the_body_of_the_next_request_is_waited_for(world: World) -> None:
    """It is not what is left of the one that has just been answered."""
    world.deploy(function())
    whole = whole_call(world)
    async with asyncio.timeout(30), serving(world, Hurried) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(whole + whole[:-10])
        for rest in (whole[-10:], b""):
            await read_answer(reader)
            await asyncio.sleep(3 * Hurried.linger_seconds)
            writer.write(rest)
        writer.close()


@pytest.mark.parametrize("watched", [False, True])
async def test_a_call_is_no_work_for_the_garbage_collector(world: World, watched: bool) -> None:
    """Short or so long that its caller is watched: nothing of it is a cycle, which would stop all others later."""
    world.deploy(function())
    whole = whole_call(world)
    if watched:  # a query makes it an exchange, with a task
        whole = whole.replace(b"/calls ", b"/calls?watched ", 1)
    async with serving(world) as address:
        reader, writer = await asyncio.open_connection(*address)

        async def call() -> None:
            tasks = len(asyncio.all_tasks())
            world.calls.hold = asyncio.Event() if watched else None
            writer.write(whole)
            if world.calls.hold is not None:
                await until(lambda: len(asyncio.all_tasks()) == tasks + 2)  # the request's, and the watch
                world.calls.hold.set()
            await read_answer(reader)
            await until(lambda: len(asyncio.all_tasks()) == tasks)

        await call()
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                await call()
            assert gc.collect() < 20
        finally:
            gc.enable()
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_client_that_sends_eleven_megabytes_reads_413(world: World, chunked: bool) -> None:
    """It gets its answer instead of a broken connection, with a length and without."""
    world.deploy(function())

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 10**6

    async with serving(world) as (host, port):
        headers = {"authorization": f"Bearer {world.key}"}
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers) as client:
            body = pieces() if chunked else b"x" * (11 * 10**6)
            answer = await client.post("/v1/functions/shop.hello/calls", content=body)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
            assert (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", CALL, CALL + b"x-slow: "])
async def test_a_head_must_arrive_in_time(world: World, sent: bytes) -> None:
    """Silence, half a line or half a head: the connection is closed."""
    async with serving(world, Hurried) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(sent)
        async with asyncio.timeout(20.0):
            assert await reader.read() == b""
        writer.close()


async def test_a_head_must_not_grow_without_end(world: World) -> None:
    """431, and the connection is closed."""
    async with serving(world) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(CALL + b"x-more: " + b"y" * (HEAD_BYTES + 1))
        answer = await reader.read()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 431")


async def test_a_body_that_goes_on_after_its_answer_is_cut_off(world: World) -> None:
    """It is thrown away for a while, then the connection is closed."""
    async with serving(world, Hurried) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(CALL + b"content-length: 99999999\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 401")
        async with asyncio.timeout(20.0):
            await reader.read()
        writer.close()


async def closed(host: str, port: int, *pieces: bytes) -> bytes:
    """What a client reads that sends on and on until it is cut off."""
    reader, writer = await asyncio.open_connection(host, port)

    async def send() -> None:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()

    read = b""
    async with asyncio.timeout(20.0):
        sending = asyncio.create_task(send())
        with contextlib.suppress(ConnectionError):
            read = await reader.read()
        await sending
    writer.close()
    return read


async def test_requests_do_not_pile_up_on_a_connection(world: World) -> None:
    """Few may wait for the answer to an earlier one; who sends more is cut off."""
    async with serving(world) as (host, port):
        read = await closed(host, port, *([b"GET /v1/apps HTTP/1.1\r\nhost: x\r\n\r\n" * 1_000] * 20))

    assert read.count(b"HTTP/1.1 401") <= 2 * PIPELINED
    assert b"HTTP/1.1 400" in read or not read


@pytest.mark.parametrize("trailer", [b"a: b\r\n", b"a"], ids=["lines", "one line"])
async def test_trailers_do_not_pile_up(world: World, trailer: bytes) -> None:
    """Nobody reads them; too many, or one without end, close the connection."""
    async with serving(world) as (host, port):
        head = CALL + b"transfer-encoding: chunked\r\n\r\n0\r\n"
        await closed(host, port, head, *([trailer * 10_000] * 100))


async def test_a_large_read_is_no_endless_trailer() -> None:
    """A TLS connection gives all that came while reading was paused in one read: of a body, or with the next head."""
    sizes: list[int] = []

    async def count(_: Scope, receive: Receive, send: Send) -> None:
        size, more = 0, True
        while more:
            piece = await receive()
            size, more = size + len(piece["body"]), piece["more_body"]
        sizes.append(size)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async with serving_app(count, ConnectionBook(ConnectionBounds()), BoundedProtocol) as ((host, port), running):
        reader, writer = await asyncio.open_connection(host, port)
        await until(lambda: running.server_state.connections)
        connection = cast("BoundedProtocol", next(iter(running.server_state.connections)))
        head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2000000\r\n\r\n"
        for read in (head, b"x" * 1_000_000, b"x" * 1_000_000 + head[:20], head[20:], b"x" * 2_000_000):
            connection.data_received(read)
        await until(lambda: len(sizes) == 2)
        assert sizes == [2_000_000, 2_000_000]
        async with asyncio.timeout(20.0):
            assert (await reader.read(12), connection.transport.is_closing()) == (b"HTTP/1.1 200", False)
        writer.close()


async def test_a_body_that_was_not_asked_for_is_no_request(world: World) -> None:
    """Answered before it was told to go on, a client may send its body or not: the connection ends either way."""
    async with serving(world) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(CALL + b"expect: 100-continue\r\ncontent-length: 40\r\n\r\n")
        async with asyncio.timeout(20.0):
            read = await reader.read()
        writer.close()

    assert read.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in read


async def hello(world: World, address: tuple[str, int]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection over which a call has been answered."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(whole_call(world))
    await read_answer(reader)
    return reader, writer


async def test_an_address_is_refused_what_it_may_not_hold(world: World) -> None:
    """At once, with the setting's name; connections with a key do not count among those without one."""
    world.deploy(function())
    bounds = ConnectionBounds(unknown_of_address=2)
    async with asyncio.timeout(30), serving(world, bounds=bounds) as address:
        known = [await hello(world, address) for _ in range(4)]
        held = [await asyncio.open_connection(*address) for _ in range(2)]
        reader, writer = await asyncio.open_connection(*address)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 429")
        assert b"unknown_connections_per_address" in answer
        assert b"retry-after:" in answer
        for _, other in [*known, *held, (reader, writer)]:
            other.close()
            await other.wait_closed()


@pytest.mark.parametrize(
    "sent", [b"", b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", CALL + b"authorization: Bearer x\r\n\r\n"]
)
async def test_a_connection_without_a_key_does_not_live_for_long(world: World, sent: bytes) -> None:
    """Whatever it asks meanwhile; one with a key does."""
    world.deploy(function())
    bounds = ConnectionBounds(unknown_seconds=2.0)  # also the time that the good one has for its first request
    async with asyncio.timeout(30), serving(world, bounds=bounds) as address:
        reader, writer = await hello(world, address)
        unknown, other = await asyncio.open_connection(*address)
        other.write(sent)
        await unknown.read()
        other.close()
        writer.write(whole_call(world))
        await read_answer(reader)
        writer.close()


async def test_idle_connections_go_when_there_is_no_room(world: World) -> None:
    """First those without a key, then those that rest for longest; 503 only when all work."""
    world.deploy(function())
    async with asyncio.timeout(30), serving(world, bounds=ConnectionBounds(of_all=3)) as address:
        idle, idle_writer = await asyncio.open_connection(*address)
        callers = [await hello(world, address) for _ in range(3)]
        assert await idle.read() == b""
        resting = await hello(world, address)
        assert await callers[0][0].read() == b""
        world.calls.hold = asyncio.Event()
        working = [*callers[1:], resting]
        for _, writer in working:
            writer.write(whole_call(world))
        await until(lambda: len(world.services.gate) == 3)

        refused, refused_writer = await asyncio.open_connection(*address)
        answer = await refused.read()

        assert answer.startswith(b"HTTP/1.1 503")
        assert b"This gateway has 3 connections, all with requests under way." in answer
        world.calls.hold.set()
        for reader, writer in working:
            await read_answer(reader)
            writer.close()
        for writer in (idle_writer, refused_writer, callers[0][1]):
            writer.close()


async def unread(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with more than a client reads."""
    length = (b"content-length", b"3000000")
    await send({"type": "http.response.start", "status": 401, "headers": [length]})
    await send({"type": "http.response.body", "body": b"x" * 3_000_000})


@pytest.mark.parametrize(
    ("why", "bounds"),
    [("no_room", ConnectionBounds(of_all=1)), ("no_key", ConnectionBounds(unknown_seconds=0.5))],
)
async def test_an_ended_connection_does_not_live_on_for_its_unread_answer(why: str, bounds: ConnectionBounds) -> None:
    """With its place the connection itself goes, and what waits in its buffer, whyever it was ended."""
    book = ConnectionBook(bounds)
    async with asyncio.timeout(30), serving_app(unread, book, Hurried) as (address, running):
        with socket.socket() as client, socket.socket() as other:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            client.connect(address)
            client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            connections = running.server_state.connections
            await until(lambda: any(one.transport.get_write_buffer_size() for one in connections))
            (ended,) = connections
            if why == "no_room":
                other.connect(address)
            await until(lambda: book.closed[why])
            await until(lambda: ended not in connections)


async def test_part_of_a_head_is_no_request_under_way(world: World) -> None:
    """Connections that have had one answer and never send the rest of the next request make room for others."""
    world.deploy(function())
    async with asyncio.timeout(30), serving(world, bounds=ConnectionBounds(of_all=3)) as address:
        held = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /v1/apps HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 401")
            writer.write(b"G")
            held.append(writer)
        held.append((await hello(world, address))[1])
        for writer in held:
            writer.close()


def test_idle_connections_outlive_the_pauses_of_clients() -> None:
    """Load balancers in front keep theirs for a minute."""
    assert server.KEEP_ALIVE_SECONDS > 60
