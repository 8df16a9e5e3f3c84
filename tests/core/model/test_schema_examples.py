"""Examples are simple values that fit."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from pilotlight_core.model.schema_examples import example_arguments, example_of


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
        ({"type": ["array", "number", "boolean"], "x-pilotlight": "ndarray"}, [1.0, 2.0]),
        ({"type": "string", "contentEncoding": "base64"}, "dGV4dA=="),
        ({"type": "string", "format": "date-time"}, "2026-01-31T12:00:00Z"),
        ({"type": "string", "format": "nonsense"}, "text"),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "string"}}}, "text"),
    ],
)  # fmt: skip
def test_an_example_fits_its_schema(schema: dict[str, Any], value: Any) -> None:
    """What the author gave, else the simplest."""
    assert example_of(schema) == value
    assert jsonschema_rs.is_valid(schema, value)


def test_a_schema_that_never_ends_does_not_either() -> None:
    """There is no such value, except where a list or another arm of a union ends it."""
    tree = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert example_of(tree) is None
    assert example_of({"$ref": "#"}) is None
    assert example_of({"type": "array", "items": {"$ref": "#"}}) is not None
    assert example_of({"anyOf": [tree, {"type": "null"}]}, tree) is None
    assert example_of({"type": "array", "items": {}, "minItems": 10**9}) == [None] * 100


def test_an_example_is_small_whatever_a_schema_asks_for() -> None:
    """Ten branches at each of twelve levels, and lists of lists of a hundred, are too many; the gateway makes these."""
    names = [f"b{number}" for number in range(10)]
    branch = {"anyOf": [{"$ref": "#"}, {"type": "null"}]}
    many = {"type": "object", "properties": dict.fromkeys(names, branch), "required": names}
    lists: dict[str, Any] = {"type": "integer"}
    for _ in range(10):
        lists = {"type": "array", "items": lists, "minItems": 100}

    assert example_of(many) is None
    assert example_of(lists) is None


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"b": {"type": "null"}, "a": {"type": "null"}}, "required": ["a", "b"],
          "x-pilotlight-order": ["a", "b"]}, {"a": None, "b": None}),
        ({"properties": {"a": {}, "b": {"default": 3}, "c": {"default": 4}}}, {"b": 3}),
        ({"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": {"A": {"const": 1}}}, {"a": 1}),
        ({"properties": {"a": True}, "required": ["a", "z", 3], "x-pilotlight-order": [["a"], "q", "a"]}, {"a": None}),
        ({"properties": [1], "required": 3, "x-pilotlight-order": 7}, {}),
        ({}, {}),
    ],
)  # fmt: skip
def test_arguments_are_those_that_a_call_needs(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """In order, whatever a tenant has written into its schema."""
    assert example_arguments(schema) == arguments
    assert list(example_arguments(schema)) == list(arguments)
