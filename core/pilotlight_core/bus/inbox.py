"""Requests and replies over one standing subscription.

Each request gets a random reply subject below the connection's private inbox, so that only its receiver can
answer. A lost connection fails every open request at once, because its reply cannot arrive any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from pilotlight_core.bus.bus_errors import BusDown, BusTimeout, NoResponders
from pilotlight_core.bus.client import STATUS, NatsClient
from pilotlight_core.model.ids import token


class Reply(NamedTuple):
    data: bytes
    headers: dict[str, str]

    @property
    def status(self) -> str:
        """The server's status ("503", "404", "204"); "" for a subscriber's reply."""
        return self.headers.get(STATUS, "")


class PendingRequest:
    """An open request. `done` resolves when `take` gets the last reply."""

    def __init__(self, is_last: Callable[[Reply], bool], loop: asyncio.AbstractEventLoop) -> None:
        self.replies: list[Reply] = []
        self.done: asyncio.Future[None] = loop.create_future()
        self._is_last = is_last

    def take(self, reply: Reply) -> None:
        self.replies.append(reply)
        if self._is_last(reply) and not self.done.done():
            self.done.set_result(None)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # the requester may be gone: asyncio need not warn


class Inbox:
    def __init__(self, client: NatsClient, prefix: str) -> None:
        self._client = client
        self._base = f"{prefix}.{token(12)}."
        self._open: dict[str, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def start(self) -> None:
        await self._client.subscribe_raw(f"{self._base}*", self._receive)

    def fail_all(self) -> None:
        """Fail every open request with BusDown, because the connection is lost."""
        for question in list(self._open.values()):
            question.fail(BusDown("The connection to the bus was lost before the answer came."))

    def post(self, subject: str, payload: bytes, headers: bytes) -> None:
        """Publish a message that has no reply.

        Raises:
            BusDown, MessageTooLarge.
        """
        self._client.publish_nowait(subject, payload, headers=headers)

    async def ask(self, subject: str, payload: bytes, *, timeout: float, headers: bytes = b"") -> Reply:
        """The first reply to `payload`.

        Raises:
            NoResponders, BusTimeout, BusDown, MessageTooLarge.
        """
        replies = await self.ask_many(subject, payload, timeout=timeout, headers=headers, is_last=_first)
        if replies[0].status == "503":
            raise NoResponders(f"Nobody listens on {subject}.")
        return replies[0]

    async def ask_many(
        self, subject: str, payload: bytes, *, timeout: float, is_last: Callable[[Reply], bool], headers: bytes = b""
    ) -> list[Reply]:
        """All replies up to the one for which `is_last` is true."""
        key = token()
        question = self._open[key] = PendingRequest(is_last, self._client.loop)
        try:
            self._client.publish_nowait(subject, payload, self._base + key, headers)
            async with asyncio.timeout(timeout):
                await question.done
        except TimeoutError:
            raise BusTimeout(f"No answer from {subject} within {timeout:g} s.") from None
        finally:
            del self._open[key]
        return question.replies

    async def flush(self, timeout: float) -> None:
        """Wait until the server has processed everything published before: it echoes a message sent last."""
        # A cancelled flush of nats-py leaves a cancelled future among its pongs, and the next pong then ends
        # the read loop.
        key = token()
        question = self._open[key] = PendingRequest(_first, self._client.loop)
        try:
            self._client.publish_nowait(self._base + key, b"")
            async with asyncio.timeout(timeout):
                await question.done
        except TimeoutError:
            raise BusTimeout(f"The bus did not answer a flush within {timeout:g} s.") from None
        finally:
            del self._open[key]

    def _receive(self, subject: str, _reply: str, data: bytes, headers: dict[str, str] | None) -> None:
        question = self._open.get(subject[len(self._base) :])
        if question is not None:
            question.take(Reply(data, headers or {}))


def _first(_reply: Reply) -> bool:
    return True
