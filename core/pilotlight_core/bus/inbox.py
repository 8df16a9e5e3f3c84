"""Questions and answers over one standing subscription.

Each question gets a random name below this connection's private inbox, so that only who was asked can answer it;
whoever waits for it is a collector. A lost
connection fails every open question at once, because its answer cannot come any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from pilotlight_core.bus.bus_errors import BusDown, BusTimeout, NoResponders
from pilotlight_core.bus.client import NatsClient
from pilotlight_core.model.ids import token

STATUS = "Status"


class Reply(NamedTuple):
    """One answer as it came."""

    data: bytes
    headers: dict[str, str]

    @property
    def status(self) -> str:
        """The server's own status ("503", "404", "204"), "" for an answer of somebody."""
        return self.headers.get(STATUS, "")


class PendingRequest:
    """An open question: `done` resolves when `take` has seen its last answer."""

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
            self.done.exception()  # nobody may be waiting any more: that is no leak worth a warning


class Inbox:
    """The questions of one connection."""

    def __init__(self, client: NatsClient, prefix: str) -> None:
        self._client = client
        self._base = f"{prefix}.{token(12)}."
        self._open: dict[str, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def start(self) -> None:
        await self._client.subscribe_raw(f"{self._base}*", self._receive)

    def fail_all(self) -> None:
        """Called when the connection is lost."""
        for question in list(self._open.values()):
            question.fail(BusDown("The connection to the bus was lost before the answer came."))

    def post(self, subject: str, payload: bytes, headers: bytes) -> None:
        """Send what has no answer of its own.

        Raises:
            BusDown, MessageTooLarge.
        """
        self._client.publish_nowait(subject, payload, headers=headers)

    async def ask(self, subject: str, payload: bytes, *, timeout: float, headers: bytes = b"") -> Reply:
        """The first answer to `payload`.

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
        """All answers up to the one that `is_last` recognises."""
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
        """Return when the server has seen everything published so far: it echoes a message behind all of them."""
        # Not nats-py's flush: a cancelled one leaves a cancelled future among its pongs, and the next pong then ends
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
