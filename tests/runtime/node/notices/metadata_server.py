"""A small HTTP server in this process that answers as a metadata service does; tests script what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By names in lower case."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is answered. `raw` is sent in the place of a whole answer; `hangs`: nothing is."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes = b""
    hangs: bool = False

    @property
    def data(self) -> bytes:
        if self.raw:
            return self.raw
        body = self.text.encode()
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body


ABSENT = Reply(status=404, text="<html>404 - Not Found</html>")
Answer = Callable[[Asked], Reply | Awaitable[Reply]]


@dataclass
class MetadataServer:
    url: str
    asked: list[Asked] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.asked]


@asynccontextmanager
async def metadata_server(answer: Answer) -> AsyncIterator[MetadataServer]:
    """A server until the block ends."""
    made = MetadataServer(url="")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                request, *lines = head.strip().split("\r\n")
                method, path, _ = request.split(" ")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                asked = Asked(method=method, path=path, headers=headers)
                made.asked.append(asked)
                told = answer(asked)
                reply = told if isinstance(told, Reply) else await told
                if reply.hangs:
                    await reader.read()
                    return
                writer.write(reply.data)
                await writer.drain()
                if reply.raw:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made
