"""The proxy, with clients and servers on sockets of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pilotlight_runtime.egress.egress_proxy import NEVER, UNRECOGNIZED_NAME, ProxyBounds, accepts_next_at
from pilotlight_runtime.egress.pinned_connections import NOT_PUBLIC
from pilotlight_runtime.egress.proxy_messages import CountedBytes
from pilotlight_runtime.egress.proxy_requests import MOST_HEAD
from pilotlight_runtime.egress.server_hello import ASKS_AGAIN
from tests.runtime.egress.proxy_world import HOST, OTHER, PUBLIC, ProxyWorld, Server, proxy_world
from tests.runtime.egress.test_client_hello import hello_of
from tests.waiting import until


@pytest.fixture
async def world(tmp_path: Path, anyio_backend: str) -> AsyncIterator[ProxyWorld]:
    async with proxy_world(tmp_path) as world:
        yield world


def counted(world: ProxyWorld) -> dict[str, CountedBytes]:
    return {each.container: each for each in world.proxy.changed_counts()}


async def test_what_is_named_is_reached_and_nothing_else(world: ProxyWorld) -> None:
    """Over TLS with the host itself; the other is refused by name, and never asked for."""
    server = await world.server(HOST)
    folder = world.way("c1", f"{HOST}:{server.port}")

    assert (await world.get(folder, HOST, server.port)).endswith(b"hello")
    refused = await world.get(folder, OTHER, server.port)
    assert refused.startswith(f"HTTP/1.1 403 {OTHER}:{server.port} is not in network= of this function\r\n".encode())
    assert world.names.asked == [("acme", HOST)]


async def test_who_speaks_is_known_by_the_socket(world: ProxyWorld) -> None:
    """Whatever a container says of itself, it has its own targets, and its own bytes are counted."""
    server = await world.server(HOST)
    one, two = world.way("c1", f"{HOST}:{server.port}"), world.way("c2", f"{OTHER}:{server.port}", tenant="other")
    asked = f"CONNECT {HOST}:{server.port} HTTP/1.1\r\nHost: {HOST}\r\nX-Container: c1\r\n\r\n".encode()

    assert b" 403 " in await world.answer(two, asked)
    assert (await world.get(one, HOST, server.port)).endswith(b"hello")
    await until(lambda: world.proxy.held == 0)
    found = counted(world)
    assert (found["c1"].connections, found["c1"].refused) == (1, 0)
    assert (found["c2"].connections, found["c2"].refused) == (0, 1)
    assert found["c1"].sent > 300
    assert found["c1"].received > 300
    assert found["c2"].sent == found["c2"].received == 0
    assert counted(world) == {}
    world.proxy.check_integrity()


async def test_a_redirect_is_a_new_question(world: ProxyWorld) -> None:
    """Its target is asked for by a tunnel of its own, and refused if it is not named."""
    server = await world.server(HOST)
    server.location = f"https://{OTHER}:{server.port}/"
    folder = world.way("c1", f"{HOST}:{server.port}")

    answer = await world.get(folder, HOST, server.port)
    assert f"Location: https://{OTHER}".encode() in answer
    assert b" 403 " in await world.get(folder, OTHER, server.port)


async def test_tls_must_ask_for_the_host_of_the_tunnel(world: ProxyWorld) -> None:
    """Another name is refused by an alert, before the server has had a byte."""
    server = await world.server(HOST)
    folder = world.way("c1", f"{HOST}:{server.port}")
    world.trusted.check_hostname = False

    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
        await world.get(folder, HOST, server.port, name=OTHER)
    assert (await world.get(folder, HOST.upper(), server.port, name=HOST)).endswith(b"hello")
    await until(lambda: world.proxy.held == 0)
    assert counted(world)["c1"].refused == 1
    assert len(server.got) == 1


async def test_a_second_hello_names_the_host_too(world: ProxyWorld) -> None:
    """A server that asks for one goes by its name; what is sent ahead of the question waits for it."""
    server = await world.server(HOST, curve="secp384r1")
    folder = world.way("c1", f"{HOST}:{server.port}")
    assert (await world.get(folder, HOST, server.port)).endswith(b"hello")

    tunnel, change = f"CONNECT {HOST}:{server.port} HTTP/1.1\r\n\r\n".encode(), b"\x14\3\3\0\1\1"
    for second in (hello_of(OTHER), change + hello_of(OTHER), change + b"GET / HTTP/1.1\r\n\r\n"):
        answer = await world.answer(folder, tunnel + hello_of(HOST) + second)
        assert ASKS_AGAIN in answer
        assert answer.endswith(UNRECOGNIZED_NAME)
    await until(lambda: world.proxy.held == 0)
    assert counted(world)["c1"].refused == 3
    assert len(server.got) == 1


async def test_a_server_that_speaks_no_tls(world: ProxyWorld) -> None:
    """Gets the first message alone: what the client would say behind it is not TLS either."""
    got = bytearray()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.extend(await reader.read(2**16))
        writer.write(b"220 speak\r\n")
        got.extend(await reader.read())
        writer.close()

    listening = await asyncio.start_server(plain, PUBLIC, 0)
    world.listening.append(listening)
    port = listening.sockets[0].getsockname()[1]
    folder, hello = world.way("c1", f"{HOST}:{port}"), hello_of(HOST)
    answer = await world.answer(folder, f"CONNECT {HOST}:{port} HTTP/1.1\r\n\r\n".encode() + hello + b"QUIT\r\n")
    assert answer.endswith(UNRECOGNIZED_NAME)
    await until(lambda: world.proxy.held == 0)
    assert bytes(got) == hello


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: internal\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x16\3\1\0\4\1\0\0\0",
        b"\0" * 64,
        b"\x16\3\1" + (16384).to_bytes(2) + b"\1\0\x3f\xfc" + bytes(16380),
    ],
)
async def test_where_tls_is_named_nothing_else_is_spoken(world: ProxyWorld, data: bytes) -> None:
    """Nor a TLS without a name; the server gets none of it."""
    server = await world.server()
    folder = world.way("c1", f"{HOST}:{server.port}")
    answer = await world.answer(folder, f"CONNECT {HOST}:{server.port} HTTP/1.1\r\n\r\n".encode() + data)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(UNRECOGNIZED_NAME)
    await until(lambda: world.proxy.held == 0)
    assert server.got == []


async def test_any_bytes_go_where_they_are_named(world: ProxyWorld) -> None:
    """`tcp://`: both ways, each side ending when it likes."""
    server = await world.server()
    folder = world.way("c1", f"tcp://{HOST}:{server.port}")
    said = f"CONNECT {HOST}:{server.port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode()

    assert (await world.answer(folder, said, end=True)).endswith(b"hello")
    assert server.got == [b"GET / HTTP/1.1\r\n\r\n"]


async def test_a_request_in_clear(world: ProxyWorld) -> None:
    """With its body, and nothing behind it: what else the client sends reaches no server."""
    server = await world.server()
    folder = world.way("c1", f"http://{HOST}:{server.port}")
    place = f"{HOST}:{server.port}"
    said = f"POST http://{place}/a HTTP/1.1\r\nHost: {place}\r\nContent-Length: 4\r\n\r\nbody".encode()
    smuggled = f"GET http://{OTHER}/ HTTP/1.1\r\nHost: {OTHER}\r\n\r\n".encode()

    assert (await world.answer(folder, said + smuggled)).endswith(b"hello")
    expected = f"POST /a HTTP/1.1\r\nHost: {place}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody".encode()
    assert server.got == [expected]
    assert b" 400 the Host header" in await world.answer(folder, said.replace(b"Host: api", b"Host: xyz"))
    assert b" 403 " in await world.answer(folder, f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"\x05\1\0\r\n\r\n", b"400"),
        (b"\xff" * 100 + b"\r\n\r\n", b"400"),
        (b"CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT 2852039166:80 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT 0xa9.254.169.254:80 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT localhost:4222 HTTP/1.1\r\n\r\n", b"403"),
        (b"GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", b"403"),
        (b"A" * MOST_HEAD, b"431"),
        (b"GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\nA:" + b" " * 8000 + b"\x01\r\n\r\n", b"400"),
        ((b"CONNECT x:1 HTTP/1.1\r\n" + b"X: y\r\n" * 2000)[:MOST_HEAD], b"431"),
    ],
)
async def test_what_a_hostile_guest_may_say(world: ProxyWorld, data: bytes, status: bytes) -> None:
    """It is answered, its connection ended, and others are served as before. It may go anywhere by name."""
    server = await world.server(HOST)
    folder = world.way("c1", "*:80", f"*:{server.port}", "http://*:80")

    assert (await world.answer(folder, data)).startswith(b"HTTP/1.1 " + status)
    assert (await world.get(folder, HOST, server.port)).endswith(b"hello")
    assert {host for _, host in world.names.asked} == {HOST}


async def test_a_name_of_a_private_address(world: ProxyWorld) -> None:
    """Though the function names it: the operator's network is not the tenant's to name."""
    world.names.answers[HOST] = [["10.0.0.1"]]
    folder = world.way("c1", f"{HOST}:443")
    answer = await world.answer(folder, f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(f"HTTP/1.1 403 {HOST} {NOT_PUBLIC}\r\n".encode())


async def test_connections_are_bounded(tmp_path: Path, anyio_backend: str) -> None:
    """Of a container, of a tenant, of all; who has none left is told so, and gets one when another ends."""
    async with proxy_world(tmp_path, ProxyBounds(of_container=2, of_tenant=3, connections=4)) as world:
        ways = [world.way(name, "*:443", tenant=name[0]) for name in ("a1", "a2", "b1", "c1")]
        held = [await world.raw(ways[index], b"CONNECT ") for index in (0, 0, 1, 2)]
        await until(lambda: world.proxy.held == 4)
        for way in ways:
            assert b" 503 too many connections" in await world.answer(way, b"")
        for _, writer in held:
            writer.close()
        await until(lambda: world.proxy.held == 0)
        assert b" 400 " in await world.answer(ways[0], b"\r\n\r\n")
        world.proxy.check_integrity()


@pytest.mark.parametrize("at", [1000.0, 0.0])
def test_the_pace_of_connections(at: float) -> None:
    """After a pause a burst of them comes at once, then so many a second; also on a machine that has just started."""
    taken = 0
    due_at = accepts_next_at(NEVER, at, 8, 4.0)
    while due_at <= at:
        taken, due_at = taken + 1, accepts_next_at(due_at, at, 8, 4.0)
    assert taken == 8
    for _ in range(50):
        due_at = accepts_next_at(due_at, due_at, 8, 4.0)
    assert due_at == at + 51 / 4.0


@pytest.mark.parametrize(
    "bounds",
    [ProxyBounds(of_container=3, per_second=0.001), ProxyBounds(of_tenant=3, tenant_per_second=0.001)],
)
async def test_new_connections_have_a_pace(tmp_path: Path, anyio_backend: str, bounds: ProxyBounds) -> None:
    """Of a container, and of a tenant: those beyond it are not taken, and others are not held up by them."""
    async with proxy_world(tmp_path, bounds) as world:
        one, other = world.way("c1", f"{HOST}:443"), world.way("c2", f"{HOST}:443", tenant="other")
        for _ in range(3):
            assert b" 400 " in await world.answer(one, b"\r\n\r\n")
        _, writer = await world.raw(one, b"\r\n\r\n")
        for _ in range(3):
            assert b" 400 " in await world.answer(other, b"\r\n\r\n")
        await until(lambda: world.proxy.held == 0)
        assert {name: each.refused for name, each in counted(world).items()} == {"c1": 3, "c2": 3}
        writer.close()


async def test_a_side_that_goes_is_no_mistake(world: ProxyWorld) -> None:
    """Whoever goes first, and however: nothing is logged, since a guest could do it all day."""

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    listening = await asyncio.start_server(reset, PUBLIC, 0)
    world.listening.append(listening)
    port = listening.sockets[0].getsockname()[1]
    folder = world.way("c1", f"tcp://{HOST}:{port}")
    with capture_logs() as logs:
        for _ in range(3):
            assert await world.answer(folder, f"CONNECT {HOST}:{port} HTTP/1.1\r\n\r\nx".encode())
            _, writer = await world.raw(folder, f"CONNECT {HOST}:{port} HTTP/1.1\r\n\r\n".encode())
            writer.transport.abort()
        await until(lambda: world.proxy.held == 0)
    assert logs == []


async def test_who_says_nothing_holds_no_place(tmp_path: Path, anyio_backend: str) -> None:
    """Neither before the request nor before TLS, nor between two bytes, nor for longer than anybody may."""
    async with proxy_world(tmp_path, ProxyBounds(head_s=0.05)) as world:
        server = await world.server()
        folder = world.way("c1", f"{HOST}:{server.port}", f"tcp://{OTHER}:{server.port}")
        assert await world.answer(folder, b"CONNECT") == b""
        answer = await world.answer(folder, f"CONNECT {HOST}:{server.port} HTTP/1.1\r\n\r\n".encode())
        assert answer.endswith(b"established\r\n\r\n")

        for rests_s in (world.proxy.bounds.idle_s, world.proxy.bounds.whole_s):
            reader, writer = await world.raw(folder, f"CONNECT {OTHER}:{server.port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            await until(lambda: server.arrived > 1)
            world.proxy.sweep(asyncio.get_running_loop().time())
            assert world.proxy.held == 1
            world.proxy.sweep(asyncio.get_running_loop().time() + rests_s)
            assert await reader.read() == b""
            writer.close()
        await until(lambda: world.proxy.held == 0)


async def test_a_way_that_is_closed(world: ProxyWorld) -> None:
    """Its connections end at once, nobody can connect, and what it had is told a last time."""
    server: Server = await world.server()
    folder = world.way("c1", f"tcp://{HOST}:{server.port}")
    reader, writer = await world.raw(folder, f"CONNECT {HOST}:{server.port} HTTP/1.1\r\n\r\nhi".encode())
    await reader.readuntil(b"\r\n\r\n")
    await until(lambda: [each.sent for each in world.proxy.changed_counts()] == [2])

    last = world.proxy.close("c1")
    assert last is not None
    assert (last.sent, last.connections, last.is_last) == (2, 1, True)
    assert world.proxy.close("c1") is None
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await world.raw(folder, b"")
    await until(lambda: world.proxy.held == 0)


async def test_who_does_not_read_holds_up_himself_alone(world: ProxyWorld) -> None:
    """Of what a server sends no more is held than a chunk and the sockets' own buffers."""

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(bytes(2**20))
                await writer.drain()
        except OSError:
            writer.close()

    listening = await asyncio.start_server(flood, PUBLIC, 0)
    port, quiet = listening.sockets[0].getsockname()[1], await world.server(HOST)
    folder = world.way("c1", f"tcp://{HOST}:{port}", f"{HOST}:{quiet.port}")
    _, writer = await world.raw(folder, f"CONNECT {HOST}:{port} HTTP/1.1\r\n\r\n".encode())
    seen: list[int] = []

    def rests() -> bool:
        """Whether nothing more has come between two looks."""
        now = [each.received for each in world.proxy.changed_counts()]
        seen.extend(now)
        return bool(seen) and not now

    await until(rests)
    assert (await world.get(folder, HOST, quiet.port)).endswith(b"hello")
    writer.transport.abort()
    listening.close()
    await until(lambda: world.proxy.held == 0)


async def test_tenants_move_as_much_however_many_connections_each_has(world: ProxyWorld) -> None:
    """One with six times as many has no more of the proxy's processor."""

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                writer.write(bytes(2**19))
                await writer.drain()
        writer.close()

    async def read_all(reader: asyncio.StreamReader) -> None:
        while await reader.read(2**17):
            pass

    listening = await asyncio.start_server(flood, PUBLIC, 0)
    port, readers, writers = listening.sockets[0].getsockname()[1], [], []
    for tenant, count in (("acme", 48), ("guest", 8)):
        folder = world.way(tenant, f"tcp://{HOST}:{port}", tenant=tenant)
        for _ in range(count):
            reader, writer = await world.raw(folder, f"CONNECT {HOST}:{port} HTTP/1.1\r\n\r\n".encode())
            readers.append(asyncio.ensure_future(read_all(reader)))
            writers.append(writer)
    await until(lambda: world.proxy.held == 56)
    counts: dict[str, int] = {}

    def moved() -> dict[str, int]:
        counts.update({each.container: each.received for each in world.proxy.changed_counts()})
        return counts

    await until(lambda: moved().get("guest", 0) > 2**24)
    before = dict(moved())
    await until(lambda: moved()["guest"] - before["guest"] > 2**26)
    ratio = (counts["acme"] - before["acme"]) / (counts["guest"] - before["guest"])
    for reading, writer in zip(readers, writers, strict=True):
        reading.cancel()
        writer.transport.abort()
    listening.close()
    await until(lambda: world.proxy.held == 0)
    assert ratio < 3, ratio


async def test_the_first_connections_of_a_tenant_are_wide(tmp_path: Path, anyio_backend: str) -> None:
    """As long as there are not too many of all."""
    bounds = ProxyBounds(wide=3, wide_of_tenant=2)
    async with proxy_world(tmp_path, bounds) as world:
        folders = {tenant: world.way(tenant, tenant=tenant) for tenant in ("acme", "guest")}
        wide: list[bool] = []
        writers = []
        for held, tenant in enumerate(("acme", "acme", "acme", "guest"), 1):
            writers.append((await world.raw(folders[tenant], b"CONNECT"))[1])
            await until(lambda held=held: world.proxy.held == held)  # type: ignore[misc]
            wide.append(world.proxy.is_wide(tenant))
        assert wide == [True, True, False, False]
        for writer in writers:
            writer.close()
        await until(lambda: world.proxy.held == 0)
