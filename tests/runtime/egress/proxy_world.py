"""A proxy with scripted names, servers that it may reach, and clients that speak as containers do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_core.host.outbound.name_resolver import ScriptedNames
from pilotlight_runtime.egress.egress_proxy import EgressProxy, ProxyBounds
from pilotlight_runtime.egress.pinned_connections import PinnedConnections
from pilotlight_runtime.egress.proxy_messages import OpenWay
from pilotlight_runtime.egress.proxy_supervisor import SOCKET, listening_socket
from tests.builders.certificates import a_server, an_authority

PUBLIC = "127.0.0.2"
HOST, OTHER = "api.example.com", "other.example.com"


class Over(Exception):
    """The test has ended."""


@dataclass(eq=False)
class Server:
    """Answers each request with what it has got; `tls` with the certificate of its host."""

    port: int
    got: list[bytes] = field(default_factory=list)
    location: str = ""
    """Where it sends its clients instead."""
    arrived: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.arrived += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            sizes = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            self.got.append(head + await reader.readexactly(sum(sizes)))
            status = f"302 Found\r\nLocation: {self.location}" if self.location else "200 OK"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".encode())
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@dataclass(eq=False)
class ProxyWorld:
    proxy: EgressProxy
    names: ScriptedNames
    folder: Path
    trusted: ssl.SSLContext
    containers: list[str] = field(default_factory=list)
    listening: list[asyncio.Server] = field(default_factory=list)

    def way(self, container: str, *targets: str, tenant: str = "acme") -> Path:
        """Let a container out; its folder."""
        folder = self.folder / container
        folder.mkdir()
        self.containers.append(container)
        function = f"{tenant}:app.{container}"
        asked = OpenWay(container=container, tenant=tenant, function=function, targets=targets)
        self.proxy.open(asked, listening_socket(folder))
        return folder

    async def server(self, host: str | None = None, *, curve: str = "") -> Server:
        """At the public address; with TLS if it is one of a host's. With a curve of its own it asks clients again."""
        context = None
        if host is not None:
            files = a_server(self.folder / "authority", host, host=host)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(files.certificate, files.key)
            if curve:
                context.set_ecdh_curve(curve)
        server = Server(0)
        listening = await asyncio.start_server(server.serve, PUBLIC, 0, ssl=context)
        self.listening.append(listening)
        server.port = listening.sockets[0].getsockname()[1]
        return server

    async def raw(self, folder: Path, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(f"{folder}/{SOCKET}")
        writer.write(data)
        return reader, writer

    async def answer(self, folder: Path, data: bytes, *, end: bool = False) -> bytes:
        """All that comes back for these bytes, until the proxy ends the connection."""
        reader, writer = await self.raw(folder, data)
        if end:
            writer.write_eof()
        try:
            return await reader.read()
        except ConnectionResetError:
            return b"(reset)"
        finally:
            writer.close()

    async def get(self, folder: Path, host: str, port: int, *, name: str | None = None) -> bytes:
        """A request over TLS in a tunnel; `name` is asked for instead of the host's. Raises ssl.SSLError."""
        reader, writer = await self.raw(folder, f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head:
                return head
            await writer.start_tls(self.trusted, server_hostname=name or host)
            writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def proxy_world(folder: Path, bounds: ProxyBounds | None = None) -> AsyncIterator[ProxyWorld]:
    """Names answer with the public address. The machine has just started: its clock is at 0."""
    trusted = ssl.create_default_context(cafile=str(an_authority(folder / "authority")))
    names, loop = ScriptedNames(answers={HOST: [[PUBLIC]], OTHER: [[PUBLIC]]}), asyncio.get_running_loop()
    began = loop.time()

    def clock() -> float:
        return loop.time() - began

    pinned = PinnedConnections(names.addresses, read_networks(PUBLIC), clock)
    try:
        async with asyncio.TaskGroup() as group:
            proxy = EgressProxy(pinned, group, bounds=bounds, clock=clock)
            world = ProxyWorld(proxy, names, folder, trusted)
            try:
                yield world
            finally:
                for container in world.containers:
                    proxy.close(container)
                for listening in world.listening:
                    listening.close()
            raise Over
    except* Over:
        pass
