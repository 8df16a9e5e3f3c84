"""Schemas as the library that compares them understands them, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_gateway.schemas.plain_schemas import plain_schema, unjudged_words

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        (
            {"$ref": "#/$defs/t", "minimum": 5, "title": "T"},
            {"title": "T", "allOf": [{"$ref": "#/$defs/t"}, {"minimum": 5}]},
        ),
        ({"$ref": "#/$defs/t", "title": "T"}, {"$ref": "#/$defs/t", "title": "T"}),
        ({"enum": [1, 7, "x"], "type": "integer", "minimum": 5}, {"enum": [7]}),
        ({"const": 1, "type": "string"}, {"not": {}}),
        ({"enum": [1], "$ref": "#/$defs/t"}, {"allOf": [{"$ref": "#/$defs/t"}, {"enum": [1]}]}),
        (
            {"enum": [1], "allOf": [{"$ref": "#/$defs/t"}]},
            {"allOf": [{"enum": [1]}, {"allOf": [{"$ref": "#/$defs/t"}]}]},
        ),
        (
            {"properties": {"enum": {"const": 1, "type": "integer"}}, "required": ["enum"]},
            {"properties": {"enum": {"enum": [1]}}, "required": ["enum"]},
        ),
        (
            {"anyOf": [{"enum": ["a"], "maxLength": 3}], "type": "string"},
            {"anyOf": [{"enum": ["a"]}], "type": "string"},
        ),
        (True, True),
    ],
)
def test_what_hides_its_neighbours_is_said_apart(schema: Any, plain: Any) -> None:
    assert plain_schema(schema) == plain


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (TEXT, TEXT | {"minLength": 1}, []),
        (TEXT | {"pattern": "^x"}, TEXT | {"pattern": "^x", "minLength": 1}, []),
        (TEXT | {"pattern": "^x"}, TEXT | {"pattern": "^y"}, ["pattern"]),
        (TEXT, TEXT | {"format": "date"}, ["format"]),
        (
            {"properties": {"a": TEXT | {"pattern": "x"}, "b": TEXT}},
            {"properties": {"a": TEXT, "b": TEXT | {"pattern": "x"}}},
            ["pattern"],
        ),
        ({"properties": {"pattern": TEXT}}, {"properties": {"format": TEXT}}, []),
        ({"enum": [{"pattern": "x"}]}, {"enum": [{"pattern": "y"}]}, []),
        ({"anyOf": [TEXT | {"pattern": "x"}, TEXT]}, {"anyOf": [TEXT | {"pattern": "x"}]}, ["pattern"]),
        ({"anyOf": [TEXT, {"type": "null"}]}, {"anyOf": [TEXT]}, []),
        (
            {"unevaluatedProperties": False, "properties": {"a": TEXT}},
            {"unevaluatedProperties": False},
            ["unevaluatedProperties"],
        ),
    ],
)
def test_what_cannot_be_judged_is_named(old: Any, new: Any, words: list[str]) -> None:
    """Wherever it stands, and where one schema is judged by another."""
    assert unjudged_words(old, new) == words
