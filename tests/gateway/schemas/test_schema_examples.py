"""Examples are simple values that fit."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from pilotlight_gateway.schemas.schema_examples import example_of


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "string", "minLength": 6}, "textxx"),
        ({"enum": ["red", "blue"]}, "red"),
        ({"const": 7}, 7),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "default": 9}, 9),
        ({"type": "integer", "examples": [4]}, 4),
        ({"type": ["number", "null"]}, 1.0),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "string"}}, ["text"]),
        ({"type": "array", "prefixItems": [{"type": "null"}], "items": {"const": 2}, "minItems": 2}, [None, 2]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text"),
        ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, {"a": "text"}),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "string"}}}, "text"),
    ],
)  # fmt: skip
def test_an_example_fits_its_schema(schema: dict[str, Any], value: Any) -> None:
    """What the author gave, else the simplest."""
    assert example_of(schema) == value
    assert jsonschema_rs.is_valid(schema, value)


def test_a_schema_that_never_ends_does_not_either() -> None:
    """An endless example is cut."""
    assert example_of({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}) is not None
    assert example_of({"$ref": "#"}) is None
    assert example_of({"type": "array", "items": {}, "minItems": 10**9}) == [None] * 100
