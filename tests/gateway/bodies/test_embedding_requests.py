"""Requests for embeddings."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.embedding_requests import MOST_INPUTS, read_embedding
from pilotlight_gateway.bodies.model_request import ModelRequest


def asked(**fields: Any) -> ModelRequest:
    return read_embedding(msgspec.json.encode({"model": "m", **fields}))


def test_a_text_is_a_list_of_one() -> None:
    """And how they are wanted is kept."""
    one, two = asked(input="a", encoding_format="base64"), asked(input=["a", "b"], dimensions=3, user="u")
    assert (one.count, bytes(memoryview(one.fields["input"])), one.as_base64) == (1, b'["a"]', True)
    assert (two.count, two.as_base64, two.ignored, two.user) == (2, False, (), "u")
    assert bytes(memoryview(two.fields["dimensions"])) == b"3"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "input"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": [1, 2]}, "input"),
        ({"input": [[1, 2]]}, "input"),
        ({"input": {"a": 1}}, "input"),
        ({"input": 7}, "input"),
        ({"input": ["x"] * (MOST_INPUTS + 1)}, "input"),
        ({"input": [""] * 1_000_000}, "input"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
    ],
)
def test_what_is_no_text_is_named(fields: dict[str, Any], field: str) -> None:
    """Ids of tokens among it; a count of far too many takes no time."""
    with pytest.raises(BadInput) as refused:
        asked(**fields)
    assert refused.value.more["field"] == field
