"""A client that costs little: one kept connection, one request after the other, plain HTTP/1.1."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back. Header names in lower case."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Line:
    """A connection to one server, made anew when it broke."""

    def __init__(self, url: str, key: str, *headers: str) -> None:
        """`headers` go with every request: "Prefer: respond-async"."""
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        named = (f"Host: {parts.netloc}", f"Authorization: Bearer {key}", "Content-Type: application/json", *headers)
        self._head = "".join(f"{header}\r\n" for header in named)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes, patience: float) -> Answer | None:
        """POST a body; None if there was no whole answer within `patience` seconds."""
        request = f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        try:
            async with asyncio.timeout(patience):
                reader, writer = self._streams or await asyncio.open_connection(self._host, self._port)
                self._streams = reader, writer
                writer.write(request)
                return await self._answer(reader)
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            self.close()
            return None

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:-2])
        body = await reader.readexactly(int(headers.get(b"content-length", b"0")))
        if headers.get(b"connection") == b"close":
            self.close()
        return Answer(status=int(lines[0].split()[1]), headers=headers, body=body)

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
