"""What the plain client reads of an answer, however its bytes come."""

from __future__ import annotations

import pytest

from benchmarks.token_client import token_arrivals

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(*pieces: str) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece.encode()), piece.encode()) for piece in pieces)


def event(name: str, data: str) -> str:
    return f"id: 1\nevent: {name}\ndata: {data}\n\n"


def test_tokens_count_when_their_event_is_whole() -> None:
    """Each byte comes at its own instant; other events and chunks without tokens count as nothing."""
    one, two = event("chunk", '{"value":{"token_ids":[1,2]}}'), event("chunk", '{"value":{"token_ids":[3]}}')
    none, stage = event("chunk", '{"value":{"token_ids":[]}}'), event("stage", '{"name":"running"}')
    data = HEAD + chunked(stage + one[:9], one[9:], none, two) + b"0\r\n\r\n"
    reads = [(float(at), data[at : at + 1]) for at in range(len(data))]

    found = list(token_arrivals(reads))

    assert [tokens for _, tokens in found] == [2, 1]
    assert found[0][0] == data.index(chunked(none)) - 1
    assert list(token_arrivals([(5.0, data)])) == [(5.0, 2), (5.0, 1)]


@pytest.mark.parametrize("data", [
    b"HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n",
    HEAD + chunked(event("error", '{"code":"failed"}')),
])  # fmt: skip
def test_what_is_no_answer_is_told(data: bytes) -> None:
    """The run ends with what the platform said."""
    with pytest.raises(ValueError, match=r"429|failed"):
        list(token_arrivals([(0.0, data)]))
