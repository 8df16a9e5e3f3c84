"""Answers that are sent piece by piece, as fast as the client reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from starlette.types import Receive

from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, STUCK_S, split_pieces

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
KEEPALIVE = b": keepalive\n\n"


@dataclass(frozen=True, kw_only=True)
class KeepAlive:
    """Seconds between two comments of a silent stream."""

    head_within: float = 0.25
    """The head waits for so long, so that an early error has its own status."""
    keepalive: float = 10.0
    stuck: float = STUCK_S


def event(name: bytes, data: bytes, number: bytes = b"") -> bytes:
    """A server-sent event; `data` is JSON, so it has no line breaks. With a `number`, clients can go on behind it."""
    head = b"id: " + number + b"\nevent: " if number else b"event: "
    return head + name + b"\ndata: " + data + b"\n\n"


class EventStream:
    """One such answer. Its head is sent with the first piece, or when that takes long."""

    def __init__(
        self,
        exchange: Exchange,
        headers: list[tuple[bytes, bytes]],
        keepalive: bytes = KEEPALIVE,
        pace: KeepAlive = KeepAlive(),
    ) -> None:
        self._exchange = exchange
        self._headers = headers
        self._keepalive = keepalive
        self._pace = pace

    async def send(self, piece: bytes) -> None:
        """Send a piece; returns when the client's socket can take more."""
        exchange = self._exchange
        if len(piece) <= PIECE_BYTES and exchange.send_piece(piece):
            return
        exchange.is_sending = True
        await self._open()
        for part in split_pieces(piece):
            await exchange({"type": "http.response.body", "body": part, "more_body": True})
            exchange.pieces += 1
        exchange.is_sending = False

    async def finish(self) -> None:
        await self._open()
        await self._exchange({"type": "http.response.body", "body": b"", "more_body": False})

    async def show_life(self) -> None:
        """Send the head soon, and a comment after each silence. Never returns.

        Raises:
            ClientGone: the client does not read any more.
        """
        await asyncio.sleep(self._pace.head_within)
        await self._open()
        stuck, exchange = 0.0, self._exchange
        while True:
            before = exchange.pieces
            await asyncio.sleep(self._pace.keepalive)
            if exchange.pieces != before:
                stuck = 0.0
            elif not exchange.is_sending:
                await self.send(self._keepalive)
            else:
                stuck += self._pace.keepalive
                if stuck >= self._pace.stuck:
                    raise ClientGone

    async def _open(self) -> None:
        if not self._exchange.status:
            await self._exchange({"type": "http.response.start", "status": 200, "headers": list(self._headers)})


class SentEvents(Protocol):
    """Events that were written already."""

    async def read(self, within_s: float | None = None) -> tuple[bytes, bool]:
        """The next bytes, and whether nothing follows; waits for some, at most so long."""
        ...

    def close(self) -> None:
        """They are read no more."""
        ...


async def send_source(
    source: SentEvents, stream: EventStream, receive: Receive, piece: bytes = b"", *, is_over: bool = False
) -> bool:
    """Send the bytes of a source, behind the first `piece`, to their end; False: the client hung up before."""
    is_whole = True
    try:
        await relay(stream, receive, partial(_send_source, source, stream, piece, is_over=is_over))
        await stream.finish()
    except ClientGone:
        is_whole = False
    finally:
        source.close()
    return is_whole


async def _send_source(source: SentEvents, stream: EventStream, piece: bytes, *, is_over: bool) -> None:
    while True:
        if piece:
            await stream.send(piece)
        if is_over:
            return
        piece, is_over = await source.read()


async def relay(stream: EventStream, receive: Receive, send_all: Callable[[], Awaitable[None]]) -> None:
    """Run `send_all`, which sends through `stream`, until it ends or the client hangs up.

    Raises:
        ClientGone: the client hung up; `send_all` was cancelled.
        Exception: what `send_all` raises.
    """
    failure: Exception | None = None
    try:
        async with asyncio.TaskGroup() as group:
            helpers = (group.create_task(wait_gone(receive)), group.create_task(stream.show_life()))
            try:
                await send_all()
            except Exception as error:  # noqa: BLE001 - raised again below, outside the group
                failure = error
            for helper in helpers:
                helper.cancel()
    except BaseExceptionGroup as failures:
        if failures.subgroup(ClientGone) is None:
            raise
        failure = ClientGone()
    try:
        if failure is not None:
            raise failure
    finally:
        del failure  # it knows this frame and what was being sent: a cycle would keep all that until it is collected


async def wait_gone(receive: Receive) -> None:
    """Wait for ClientGone, which it raises; never returns."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
