"""Vectors as OpenAI's clients read them."""

from __future__ import annotations

import base64
import struct
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadOutput
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies.embedding_vectors import embeddings_json


def written(value: Any, **more: Any) -> Any:
    """The answer, read again."""
    asked: dict[str, Any] = {
        "model": "m", "count": 2, "as_base64": False, "prompt_tokens": None, "most": None, "arrays": 100,
    }  # fmt: skip
    return msgspec.json.decode(embeddings_json(msgspec.msgpack.encode(value), **(asked | more)))


def test_a_list_and_a_document_are_the_same() -> None:
    """But that a document says how many tokens there were, unless the call has counted them."""
    vectors = [[1.0, 2], [3, 4.5]]
    plain, told = written(vectors), written({"embeddings": vectors, "prompt_tokens": 9})
    assert [one["embedding"] for one in plain["data"]] == [one["embedding"] for one in told["data"]] == vectors
    assert (plain["usage"]["total_tokens"], told["usage"]["total_tokens"]) == (0, 9)
    assert written({"embeddings": vectors, "prompt_tokens": 9}, prompt_tokens=4)["usage"]["prompt_tokens"] == 4


def test_base64_is_of_little_endian_float32() -> None:
    """As the stock client decodes it."""
    found = written([[1.0, -0.5], [0, 2]], as_base64=True)["data"][0]["embedding"]
    assert struct.unpack("<2f", base64.b64decode(found)) == (1.0, -0.5)


@pytest.mark.parametrize(
    "value", [None, 3, "ab", [[1.0]], [[1.0], "x"], [[1.0], [None]], [[True], [1.0]], [[1.0], {"a": 1}], [1.0, 2.0]]
)
def test_what_are_no_vectors_is_refused(value: Any) -> None:
    """With what was expected."""
    with pytest.raises(BadOutput):
        written(value)


def test_what_float32_has_not_is_refused_in_base64() -> None:
    """It would be infinite there."""
    with pytest.raises(BadOutput):
        written([[1e300], [1.0]], as_base64=True)
    assert written([[1e300], [1.0]])["data"][0]["embedding"] == [1e300]


def test_what_takes_long_is_left_to_a_worker() -> None:
    """By the number of values."""
    with pytest.raises(TooManyValues):
        written([[1.0] * 50, [1.0] * 50], most=20)
