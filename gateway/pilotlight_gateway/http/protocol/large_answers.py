"""Answers larger than a connection's buffer: sent as fast as the client reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain

from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange

PIECE_BYTES = 64 * 1024
"""The server takes no piece while its buffer, which no budget counts, holds more than this."""
STUCK_S = 60.0
"""A client that reads nothing for so long counts as gone."""


def split_pieces(data: bytes) -> Iterator[bytes]:
    """The pieces of `data`."""
    if len(data) <= PIECE_BYTES:
        yield data
        return
    for start in range(0, len(data), PIECE_BYTES):
        yield data[start : start + PIECE_BYTES]


async def answer_in_pieces(
    exchange: Exchange, headers: list[tuple[bytes, bytes]], body: Sequence[bytes], stuck: float = STUCK_S
) -> None:
    """Send an answer with status 200, whose body comes in parts; returns when at most one piece is left to send.

    Raises:
        ClientGone: the client read nothing for `stuck` seconds.
    """
    loop = asyncio.get_running_loop()
    headers.append((b"content-length", str(sum(map(len, body))).encode()))
    try:
        async with asyncio.timeout(stuck) as timeout:
            await exchange({"type": "http.response.start", "status": 200, "headers": headers})
            for piece in chain.from_iterable(map(split_pieces, body)):
                await exchange({"type": "http.response.body", "body": piece, "more_body": True})
                timeout.reschedule(loop.time() + stuck)
            await exchange({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        raise ClientGone from None
