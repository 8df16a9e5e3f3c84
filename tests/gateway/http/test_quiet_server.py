"""The server that waits for its end."""

from __future__ import annotations

import asyncio
import socket
import time

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from uvicorn import Config

from pilotlight_gateway.http import quiet_server
from pilotlight_gateway.http.listening_socket import listen, url_of
from pilotlight_gateway.http.quiet_server import QuietServer


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers with nothing."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def test_it_ends_when_it_is_told_to(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it would rest, and not before; its answers have their date."""
    monkeypatch.setattr(quiet_server, "SECOND_S", 3_600.0)
    server = QuietServer(Config(nothing, lifespan="off", log_config=None))
    with listen("127.0.0.1", 0) as listening:
        async with asyncio.TaskGroup() as group, httpx.AsyncClient(base_url=url_of(listening)) as client:
            serving = group.create_task(server.serve(sockets=[listening]))
            answer = await client.get("/")
            assert (answer.status_code, "date" in answer.headers) == (204, True)
            assert not serving.done()

            server.stop()


async def test_each_second_has_its_date(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tick that it takes is one of those that make the header."""
    monkeypatch.setattr(quiet_server, "SECOND_S", 0.001)
    server, ticks = QuietServer(Config(nothing, lifespan="off", log_config=None)), list[int]()
    on_tick = server.on_tick

    async def counted(counter: int) -> bool:
        ticks.append(counter)
        if len(ticks) == 3:
            server.stop()
        return await on_tick(counter)

    monkeypatch.setattr(server, "on_tick", counted)
    with listen("127.0.0.1", 0) as listening:
        await server.serve(sockets=[listening])

    assert ticks == [0, 10, 20]


@pytest.mark.parametrize("busy_s", [0.0, 0.2], ids=["", "on a busy machine"])
async def test_a_request_that_comes_as_it_ends_is_answered(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch, busy_s: float
) -> None:
    """Nobody has accepted its connection yet: closing the listener would reset it. However long a turn takes."""
    loop = asyncio.get_running_loop()
    server = QuietServer(Config(nothing, lifespan="off", log_config=None))
    with listen("127.0.0.1", 0) as listening, socket.socket() as client:

        async def ends(_: int) -> bool:
            client.connect(listening.getsockname())
            client.sendall(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
            loop.call_soon(loop.call_soon, time.sleep, busy_s)  # the turn in which it is accepted
            return True

        monkeypatch.setattr(server, "on_tick", ends)
        await server.serve(sockets=[listening])

        client.settimeout(30.0)
        assert client.recv(4096).startswith(b"HTTP/1.1 204 ")
        assert client.recv(4096) == b""
