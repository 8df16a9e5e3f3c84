"""Schemas that would let a tenant stop the gateway are not compiled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.schemas.schema_guard import DRAFT, check_schema
from pilotlight_gateway.schemas.schema_validators import compile_schema
from tests.example_counts import examples
from tests.work_done import calls_made

NODE = {"$ref": "#/$defs/N"}
OPTIONAL_NODE = {"anyOf": [NODE, {"type": "null"}]}
TREE = {
    "type": "object",
    "properties": {"root": NODE},
    "$defs": {"N": {"type": "object", "properties": {"left": OPTIONAL_NODE, "right": OPTIONAL_NODE}}},
}


def doubling(depth: int) -> dict[str, Any]:
    links = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": links | {f"d{depth}": {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]+$"}}, "$schema": DRAFT},
        TREE,
        {"type": "object", "properties": {"next": {"$ref": "#"}, "all": {"type": "array", "items": {"$ref": "#"}}}},
        doubling(8),
    ],
)
def test_what_type_hints_make_is_accepted(schema: dict[str, Any]) -> None:
    """Objects, unions, trees and lists of themselves compile."""
    check_schema(schema, "input_schema")
    compile_schema(schema)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "https://evil.example/x.json"}, "leads out"),
        ({"$ref": "file:///etc/passwd"}, "leads out"),
        ({"$ref": 3}, "leads out"),
        ({"$ref": "#/$defs/none"}, "no schema"),
        ({"$ref": "#"}, "without going deeper"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}, "without going deeper"),
        ({"$id": "https://x.example/"}, r"\$id"),
        ({"items": {"$dynamicRef": "#x"}}, r"\$dynamicRef"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "2020-12"),
        (doubling(20), "unfolded"),
        ({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}, "more than one way"),
        ({"patternProperties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}, "more than one way"),
        ({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}, "more than one way"),
        ({"properties": {"a": 3}}, "neither an object"),
        ({"properties": {f"p{i}": {"pattern": "x"} for i in range(65)}}, "patterns"),
        ({"pattern": "x" * 257}, "pattern"),
        ({"properties": {f"p{i}": {} for i in range(4_001)}}, "parts"),
    ],
)
def test_what_could_cost_much_is_refused(schema: dict[str, Any], said: str) -> None:
    """The error says which rule, and names the field."""
    with pytest.raises(BadInput, match=said) as caught:
        check_schema(schema, "input_schema")

    assert caught.value.more["field"] == "input_schema"


def test_nesting_is_bounded_without_recursion() -> None:
    """A schema nested a thousand deep is refused, not followed."""
    schema: dict[str, Any] = {}
    for _ in range(1_000):
        schema = {"items": schema}

    with pytest.raises(BadInput, match="nested deeper"):
        check_schema(schema, "input_schema")


KEYWORDS = st.sampled_from(["allOf", "anyOf", "properties", "items", "additionalProperties", "not"])


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Small graphs of definitions that refer to each other in all ways."""
    names = [f"d{i}" for i in range(draw(st.integers(1, 4)))]
    refs = st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in names] + [{"type": "string"}])

    def part() -> dict[str, Any]:
        word = draw(KEYWORDS)
        some = draw(st.lists(refs, min_size=1, max_size=2))
        if word in ("allOf", "anyOf"):
            return {word: some}
        return {word: dict(zip("ab", some, strict=False))} if word == "properties" else {word: some[0]}

    return {"$ref": "#/$defs/d0", "$defs": {name: part() | part() for name in names}}


@examples(300)
@given(schemas(), st.integers(1, 60), st.sampled_from(["object", "array"]))
def test_an_accepted_schema_judges_deep_values_quickly(schema: dict[str, Any], depth: int, shape: str) -> None:
    """Whatever passes the guard takes little on a value of sixty levels, where recursion would show."""
    try:
        check_schema(schema, "input_schema")
    except BadInput:
        return
    value: Any = 1
    for _ in range(depth):
        value = {"a": value, "b": value} if shape == "object" and depth < 12 else [value]
    validator = compile_schema(schema)

    assert calls_made(lambda: validator.is_valid(value)) < 500_000
