"""Large answers go out as fast as they are read, and not at all where nobody reads."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from pilotlight_gateway.http.protocol.http_exchange import ClientGone, Exchange
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces, split_pieces
from tests.gateway.http.asgi import Wire


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_pieces_are_the_whole(size: int) -> None:
    """In order, none larger than a piece, and one for what fits one."""
    data = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    pieces = list(split_pieces(data))

    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert len(pieces) == max(1, -(-size // PIECE_BYTES))


async def test_a_client_that_reads_nothing_is_taken_for_gone() -> None:
    """After its time, with one piece on its way."""
    wire = Wire(reads=False)

    with pytest.raises(ClientGone):
        await answer_in_pieces(Exchange({}, wire.send, 0.0), [], [b"x" * PIECE_BYTES] * 3, stuck=0.02)

    assert len(wire.body) == PIECE_BYTES


async def test_a_slow_client_has_its_time_for_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer may take longer in all than a client may be stuck."""
    loop, sent = asyncio.get_running_loop(), list[Message]()
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 60.0 * len(sent))

    async def send(message: Message) -> None:
        sent.append(message)
        await asyncio.sleep(0)  # what is due by now rings

    await answer_in_pieces(Exchange({}, send, 0.0), [], [b"x" * PIECE_BYTES * 4], stuck=100.0)

    assert sum(len(message.get("body", b"")) for message in sent) == PIECE_BYTES * 4
    assert [message.get("more_body") for message in sent] == [None, True, True, True, True, False]
