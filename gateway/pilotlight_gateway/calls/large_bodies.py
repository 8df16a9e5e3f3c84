"""Inputs and answers that are too large for the bus: a small HTTP listener for agents.

An input above `INLINE_BYTES` is offered under a random token and can be read once; an answer of that size is left under
its own token. The byte budget counts an input since its request was read, and an answer until its call has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import BodyRef
from pilotlight_gateway.bodies.byte_budget import ByteBudget

INLINE_BYTES = 256 * 1024
"""Larger frames would hold up everything else on the one connection to the bus."""
ANSWER_BYTES = 11 * 10**6
"""The largest answer: 10 MB and some framing."""


class ExpectedAnswer:
    """A place for one answer."""

    __slots__ = ("data", "tenant")

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.data: bytes | None = None


@dataclass(kw_only=True)
class LargeBodies:
    """Bodies offered to agents and expected from them, by token. `url`: of the listener."""

    url: str
    budget: ByteBudget
    _offered: dict[str, bytes] = field(default_factory=dict)
    _expected: dict[str, ExpectedAnswer] = field(default_factory=dict)

    def offer(self, data: bytes) -> BodyRef:
        """Make `data` readable once."""
        name = token()
        self._offered[name] = data
        return BodyRef(url=f"{self.url}/bodies/{name}", token=name, size=len(data))

    def expect(self, tenant: str) -> BodyRef:
        """Make a place for one answer of up to `ANSWER_BYTES`, which count as the tenant's."""
        name = token()
        self._expected[name] = ExpectedAnswer(tenant)
        return BodyRef(url=f"{self.url}/answers/{name}", token=name, size=ANSWER_BYTES)

    def answer(self, ref: BodyRef | None) -> bytes | None:
        """The answer that was left at a place, if any. It stays counted until it is withdrawn."""
        place = self._expected.get(ref.token) if ref else None
        return place.data if place else None

    def withdraw(self, ref: BodyRef | None) -> None:
        """Close an offer or a place."""
        if ref is not None:
            self._offered.pop(ref.token, None)
            place = self._expected.pop(ref.token, None)
            if place is not None:
                self.budget.give_back(len(place.data or b""), place.tenant)

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
        place = self._expected[name]
        parts: list[bytes] = []
        held, more = 0, True
        try:
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return 400
                if self._expected.get(name) is not place:  # the call ended meanwhile
                    return 410
                part = message.get("body", b"")
                if held + len(part) > ANSWER_BYTES:
                    return 413
                self.budget.take(len(part), place.tenant)
                held += len(part)
                parts.append(part)
                more = message.get("more_body", False)
            # An agent that did not hear us repeats itself: what is given back then is the first copy.
            held, place.data = len(place.data or b""), b"".join(parts)
            return 204
        except Unavailable:
            return 503
        finally:
            self.budget.give_back(held, place.tenant)


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/octet-stream"), (b"content-length", str(len(body)).encode())]
    if status == 204:
        headers = []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
