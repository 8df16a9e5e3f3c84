"""Large inputs and answers, which do not travel over the bus: a small listener that only agents know.

An input above `INLINE_BYTES` is offered under a random token and can be read once, by the agent that was granted the
call; an answer of that size is left under a token that was made for it. Both are held within one byte budget, which
counts every body of the gateway, so that its memory is bounded whatever arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages import BodyRef

INLINE_BYTES = 256 * 1024
"""Larger frames would hold up everything else on the one connection to the bus."""
ANSWER_BYTES = 11 * 10**6
"""The largest answer: 10 MB and some framing."""


@dataclass(kw_only=True)
class Budget:
    """Bytes of bodies, answers and journals that the gateway may hold at a time."""

    limit: int
    used: int = 0

    def take(self, size: int) -> None:
        """Count `size` bytes.

        Raises:
            Unavailable: `overloaded`, if that is more than the budget holds.
        """
        if self.used + size > self.limit:
            raise Unavailable(
                f"this gateway already holds {self.used} of {self.limit} bytes.", code="overloaded", retry_after=1.0
            )
        self.used += size

    def give_back(self, size: int) -> None:
        self.used -= size

    def check_integrity(self) -> None:
        """Raises AssertionError if more was given back than taken."""
        if not 0 <= self.used <= self.limit:
            raise AssertionError(f"byte budget is at {self.used} of {self.limit}")


@dataclass(kw_only=True)
class Bodies:
    """What is offered to agents and expected from them, by token. `url` is where they reach the listener."""

    url: str
    _offered: dict[str, bytes] = field(default_factory=dict)
    _expected: dict[str, bytes | None] = field(default_factory=dict)

    def offer(self, data: bytes) -> BodyRef:
        """Make `data` readable once."""
        name = token()
        self._offered[name] = data
        return BodyRef(url=f"{self.url}/bodies/{name}", token=name, size=len(data))

    def expect(self) -> BodyRef:
        """A place for one answer of up to `ANSWER_BYTES`."""
        name = token()
        self._expected[name] = None
        return BodyRef(url=f"{self.url}/answers/{name}", token=name, size=ANSWER_BYTES)

    def collect(self, ref: BodyRef | None) -> bytes | None:
        """The answer that was left, if it was; its place is closed."""
        return self._expected.pop(ref.token, None) if ref else None

    def withdraw(self, ref: BodyRef | None) -> None:
        """Close an offer or a place, whether it was used or not."""
        if ref is not None:
            self._offered.pop(ref.token, None)
            self._expected.pop(ref.token, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The listener: `GET /bodies/{token}`, `PUT /answers/{token}`."""
        if scope["type"] != "http":
            return
        _, kind, name = [*str(scope["path"]).split("/", 2), "", ""][:3]
        if kind == "bodies" and scope["method"] == "GET":
            data = self._offered.pop(name, None)
            await _answer(send, 200 if data is not None else 404, data or b"")
        elif kind == "answers" and scope["method"] == "PUT" and name in self._expected:
            status = await self._receive(name, receive)
            await _answer(send, status, b"")
        else:
            await _answer(send, 404, b"")

    async def _receive(self, name: str, receive: Receive) -> int:
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return 400
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > ANSWER_BYTES:
                return 413
            more = message.get("more_body", False)
        if name not in self._expected:  # the call ended meanwhile
            return 410
        self._expected[name] = b"".join(parts)
        return 204


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/octet-stream"), (b"content-length", str(len(body)).encode())]
    if status == 204:
        headers = []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
