"""Talking ASGI by hand, for what httpx's transport cannot do: hang up, trickle, stall, lie."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.types import ASGIApp, Message

from pilotlight_gateway.http.protocol.http_exchange import SERVED


@dataclass
class Wire:
    """Both ends of one request. What the client sends is given; it hangs up when `gone` is set."""

    pieces: Iterable[bytes] = (b"",)
    stall: bool = False
    """Send the pieces and then neither more nor an end."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    sent: list[Message] = field(default_factory=list)
    reads: bool = True
    """Whether the client takes what it is sent."""
    served: object | None = None
    """What the server offers of the request beyond ASGI."""

    def __post_init__(self) -> None:
        self._left = list(self.pieces)
        self.started = asyncio.Event()

    async def receive(self) -> Message:
        if self._left:
            piece = self._left.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._left) or self.stall}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        self.started.set()
        if not self.reads and message["type"] == "http.response.body":
            await asyncio.Event().wait()

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {key.decode(): value.decode() for key, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


async def ask(app: ASGIApp, wire: Wire, method: str, target: str, **headers: str) -> Wire:
    """Run one request over `wire` to its end."""
    path, _, query = target.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "server": ("gateway", 80),
        "client": ("test", 1),
    }
    if wire.served is not None:
        scope[SERVED] = wire.served
    await app(scope, wire.receive, wire.send)
    return wire
