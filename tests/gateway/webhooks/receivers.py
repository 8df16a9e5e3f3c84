"""Receivers of webhooks on loopback, with real sockets: what they answer, and what they got."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    server_name: str | None
    """What TLS asked for."""


@dataclass(kw_only=True)
class Receiver:
    """A listening receiver."""

    port: int = 0
    answer: bytes | Answer = OK
    got: list[Received] = field(default_factory=list)
    connections: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    server_name: str | None = None

    async def wait_for(self, count: int, within: float = 20.0) -> list[Received]:
        """The first `count` requests."""
        async with asyncio.timeout(within):
            while len(self.got) < count:
                self.arrived.clear()
                await self.arrived.wait()
        return self.got[:count]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            await self._serve(reader, writer)
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            path = head[0].split(" ")[1]
            self.got.append(Received(path=path, headers=headers, body=body, server_name=self.server_name))
            self.arrived.set()
            if isinstance(self.answer, bytes):
                writer.write(self.answer)
                await writer.drain()
            else:
                await self.answer(writer)
            writer.close()
            await writer.wait_closed()


def status(code: int, *headers: str) -> bytes:
    """An answer without a body."""
    return "\r\n".join((f"HTTP/1.1 {code} Whatever", *headers, "content-length: 0", "", "")).encode()


@asynccontextmanager
async def receiving(
    host: str = "127.0.0.1", answer: bytes | Answer = OK, context: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    """A receiver; with a context it speaks TLS."""
    receiver = Receiver(answer=answer)
    if context is not None:
        context.sni_callback = lambda _socket, name, _context: setattr(receiver, "server_name", name)
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(receiver.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, host, 0, ssl=context)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def certificate(folder: Path, *names: str) -> tuple[ssl.SSLContext, str]:
    """A server's context for these names and addresses, and the file of the authority that vouches for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")])
    alternatives: list[x509.GeneralName] = []
    for name in names:
        try:
            alternatives.append(x509.IPAddress(ip_address(name)))
        except ValueError:
            alternatives.append(x509.DNSName(name))
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, secret = folder / "receiver.pem", folder / "receiver.key"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, secret)
    return context, str(file)
