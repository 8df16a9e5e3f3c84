"""What functions yield, as far as it is believed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadOutput
from pilotlight_gateway.http.openai.generation_chunks import (
    MOST_DOCUMENT_BYTES,
    ChunkUsage,
    CountedChunk,
    GenerationChunk,
    finish_of,
    read_chunk,
    tokens_of,
    usage_of_units,
)


def chunk_of(value: Any) -> GenerationChunk:
    return read_chunk(msgspec.msgpack.encode(value))


def test_a_text_is_a_chunk() -> None:
    """However long: it is passed on as it is."""
    assert chunk_of("hé") == GenerationChunk("hé")
    assert chunk_of("x" * 500_000).text == "x" * 500_000


def test_a_document_may_have_more() -> None:
    """Ids of tokens are not read, nor what nobody knows."""
    found = chunk_of({"text": "a", "token_ids": ["no", {}], "new": 1, "usage": {"prompt_tokens": 3}})
    assert found == GenerationChunk("a", usage=ChunkUsage(prompt_tokens=3))


@pytest.mark.parametrize(
    "value",
    [None, 7, b"bytes", ["a"], {"text": 7}, {"usage": {"prompt_tokens": "x"}}, {"tool_calls": {"index": 0}},
     {"logprobs": [{"token": "a"}]}, {"text": "x", "token_ids": [0] * MOST_DOCUMENT_BYTES}],
)  # fmt: skip
def test_what_is_no_chunk_is_refused(value: Any) -> None:
    """Nothing of it reaches a client."""
    with pytest.raises(BadOutput):
        chunk_of(value)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\xd9\x05ab", b"\xa2\xff\xfe", b"\x91" * 100_000])
def test_what_cannot_be_read_is_refused(data: bytes) -> None:
    """However it is wrong."""
    with pytest.raises(BadOutput):
        read_chunk(data)


def test_units_are_usage() -> None:
    """Where the function has counted some."""
    assert usage_of_units({"prompt_tokens": 1, "cached_tokens": 2}) == ChunkUsage(3, 0, 2)
    assert usage_of_units({"seconds": 1}) is None
    assert usage_of_units(None) is None


def test_an_end_has_a_reason_that_clients_know() -> None:
    """Whatever the function calls it."""
    assert [finish_of(reason) for reason in ("length", "bored", None)] == ["length", "stop", "stop"]


def test_tokens_of_a_chunk_are_counted_and_not_read() -> None:
    """However many; what says nothing of its tokens has none."""
    for count in (0, 1, 15, 16, 70_000):
        data = msgspec.msgpack.encode({"text": "a", "token_ids": [7] * count})
        if count < 70_000:
            assert tokens_of(read_chunk(data, counting=True)) == count
        assert tokens_of(CountedChunk(token_ids=msgspec.Raw(msgspec.msgpack.encode(["x"] * count)))) == count
    for value in ("a", {"text": "a"}, {"token_ids": 7}, {"token_ids": None}):
        assert tokens_of(read_chunk(msgspec.msgpack.encode(value), counting=True)) == 0
    assert tokens_of(read_chunk(msgspec.msgpack.encode({"token_ids": [1]}))) == 0
