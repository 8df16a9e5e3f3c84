"""A listener with TLS: real sockets, on both event loops that processes run on."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvloop
from starlette.types import Receive, Scope, Send

from pilotlight_core.host.certificates.server_context import ServerContext
from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_gateway.http.listening_socket import listen
from pilotlight_gateway.http.quiet_server import QuietServer
from pilotlight_gateway.http.server import make_server
from pilotlight_gateway.http.tls_listener import HandshakeBounds, TlsListener
from tests.builders.certificates import a_server, an_authority, tls_files, trusting
from tests.waiting import until

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
BOUNDS = HandshakeBounds()
ESTABLISHED = 1
"""Of a connection's `tcp_info`."""
ASK = b"GET /%s HTTP/1.1\r\nhost: localhost\r\n\r\n"


@dataclass
class Application:
    """Answers /plain at once, and /stream with a piece for each step."""

    step: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    schemes: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.schemes.append(scope["scheme"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/stream":
            for number in range(3):
                await self.step.acquire()
                await send({"type": "http.response.body", "body": b"%d" % number, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass
class Listening:
    port: int
    server: QuietServer
    context: ServerContext
    trusted: ssl.SSLContext
    app: Application

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("localhost", self.port, ssl=self.trusted)


@asynccontextmanager
async def listening(folder: Path, bounds: HandshakeBounds = BOUNDS) -> AsyncIterator[Listening]:
    authority, app = an_authority(folder), Application()
    context = ServerContext(tls_files(a_server(folder)), datetime.now(UTC))
    listener = listen("127.0.0.1", 0)
    server = make_server(app, graceful_seconds=1, tls=TlsListener(context, bounds))
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started)
        try:
            yield Listening(listener.getsockname()[1], server, context, trusting(authority), app)
        finally:
            server.stop()


def certificate_of(writer: asyncio.StreamWriter) -> bytes:
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return found


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: bytes = b"plain") -> bytes:
    writer.write(ASK % path)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readuntil(b"0\r\n\r\n")
    return head


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a coroutine on one of the loops."""

    def run(work: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(asyncio.wait_for(work, 60))

    return run


def test_connections_stay_when_the_certificate_changes(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    """One at rest and one with half a stream go on with what they began with; a new one sees the new certificate."""

    async def scene() -> None:
        async with listening(tmp_path) as there:
            resting, streaming = await there.connect(), await there.connect()
            await answered(*resting)
            streaming[1].write(ASK % b"stream")
            there.app.step.release()
            await streaming[0].readuntil(b"0\r\n")

            a_server(tmp_path)
            assert there.context.refresh(datetime.now(UTC))

            new = await there.connect()
            assert b"200 OK" in await answered(*new)
            assert certificate_of(new[1]) != certificate_of(resting[1])
            assert b"200 OK" in await answered(*resting)
            for _ in range(2):
                there.app.step.release()
            await streaming[0].readuntil(b"2\r\n0\r\n\r\n")
            assert set(there.app.schemes) == {"https"}
            for _, writer in (new, resting, streaming):
                writer.close()

    run(scene())


def test_who_speaks_no_tls_or_trusts_nobody_gets_nothing(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    """Plain HTTP is closed without an answer; the listener serves on."""

    async def scene() -> None:
        async with listening(tmp_path) as there:
            reader, writer = await asyncio.open_connection("localhost", there.port)
            writer.write(ASK % b"plain")
            assert b"HTTP/1.1" not in await reader.read()
            writer.close()
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.open_connection("localhost", there.port, ssl=ssl.create_default_context())

            one = await there.connect()
            assert b"200 OK" in await answered(*one)
            one[1].close()
            assert len(there.app.schemes) == 1

    run(scene())


def test_a_request_that_comes_with_the_handshake_is_answered(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    """Clients write it with the last part of the handshake: none of many is lost."""

    async def scene() -> None:
        async with listening(tmp_path) as there:

            async def one() -> None:
                reader, writer = await there.connect()
                writer.write((ASK % b"plain") * 3)
                for _ in range(3):
                    await reader.readuntil(b"0\r\n\r\n")
                writer.close()

            for _ in range(5):
                await asyncio.gather(*(one() for _ in range(10)))

    run(scene())


def test_those_who_only_connect_are_bounded_and_end(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    """Beyond the places of an address they are closed at once; those who have one and say nothing lose it."""

    async def scene() -> None:
        async with listening(tmp_path, HandshakeBounds(of_address=2)) as there:
            assert there.server.tls is not None
            tls = there.server.tls
            silent = [await connected(there.port) for _ in range(2)]
            await until(lambda: tls.under_way == 2)

            third = await connected(there.port)
            assert await ended(third)
            assert tls.refused == 1

            for each in silent:
                each[1].close()
            await until(lambda: tls.under_way == 0)
            tls.handshake_seconds = 0.05
            late = await connected(there.port)
            assert await ended(late)
            one = await there.connect()
            assert b"200 OK" in await answered(*one)
            for each in (late, one, third):
                each[1].close()

    run(scene())


def test_the_oldest_handshake_gives_way_and_a_named_proxy_may_have_many(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    """Whoever speaks TLS gets in though strangers hold all places."""

    async def scene() -> None:
        bounds = HandshakeBounds(of_all=3, of_address=1, exempt=read_networks("127.0.0.0/8"))
        async with listening(tmp_path, bounds) as there:
            assert there.server.tls is not None
            tls = there.server.tls
            silent: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
            for _ in range(3):
                silent.append(await connected(there.port))
                await until(lambda: tls.under_way == len(silent))

            one = await there.connect()

            assert b"200 OK" in await answered(*one)
            assert await ended(silent[0])
            assert (tls.refused, tls.under_way) == (0, 2)
            for each in (*silent, one):
                each[1].close()

    run(scene())


def test_who_does_not_hear_of_the_end_is_not_waited_for(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    """A client that ends its half of TLS never: its connection is aborted, and not held for half a minute."""

    async def scene() -> None:
        async with listening(tmp_path) as there:
            assert there.server.tls is not None
            there.server.tls.shutdown_seconds = 0.05
            with socket.create_connection(("127.0.0.1", there.port)) as plain:
                deaf = await asyncio.to_thread(there.trusted.wrap_socket, plain, server_hostname="localhost")
                with deaf:
                    deaf.sendall((ASK % b"plain").replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
                    await until(lambda: is_gone(deaf.fileno()))

    run(scene())


def is_gone(fd: int) -> bool:
    """Whether the other end of this machine's TCP connection has closed it, whatever of it was read."""
    with socket.socket(fileno=os.dup(fd)) as one:
        state = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state != ESTABLISHED


def test_handshakes_leave_room_for_connections() -> None:
    """They may take an eighth of the files that a process may have."""
    assert HandshakeBounds().within(1_048_576).of_all == 1024
    assert HandshakeBounds().within(1024).of_all == 128
    assert HandshakeBounds().within(1).of_all == 1


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """One who says nothing."""
    return await asyncio.open_connection("127.0.0.1", port)


async def ended(one: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Whether the listener closes it without a word."""
    try:
        return await one[0].read() == b""
    except ConnectionError:
        return True
