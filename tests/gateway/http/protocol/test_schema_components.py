"""Definitions of schemas become components of a document."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.http.protocol.schema_components import SchemaComponents

ITEM = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Item"}}}
POINTED = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Item"}}}


def a_list_of(name: str, **definitions: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}, "$defs": definitions}


def test_a_schema_points_to_components() -> None:
    """Recursive ones too; what has no definitions stays as it is."""
    components = SchemaComponents({"Problem": {}})

    assert components.add(a_list_of("Item", Item=ITEM)) == {
        "type": "array", "items": {"$ref": "#/components/schemas/Item"},
    }  # fmt: skip
    assert components.add({"type": "string"}) == {"type": "string"}
    assert components.schemas == {"Problem": {}, "Item": POINTED}


def test_equal_definitions_are_one_and_others_have_numbers() -> None:
    """Also beside further definitions, and beside the document's own."""
    components = SchemaComponents({"Usage": {"type": "object"}})
    components.add(a_list_of("Item", Item=ITEM))

    again = components.add(a_list_of("Item", Item=ITEM, Usage={"type": "integer"}))
    other = components.add(a_list_of("Item", Item={"type": "null"}))

    assert again["items"] == {"$ref": "#/components/schemas/Item"}
    assert other["items"] == {"$ref": "#/components/schemas/Item_2"}
    assert components.schemas == {
        "Usage": {"type": "object"}, "Item": POINTED, "Usage_2": {"type": "integer"}, "Item_2": {"type": "null"},
    }  # fmt: skip


def test_a_schema_may_be_one_reference() -> None:
    """As that of an answer which is a dataclass."""
    schema = {"$ref": "#/$defs/Item", "$defs": {"Item": ITEM}}

    assert SchemaComponents({}).add(schema) == {"$ref": "#/components/schemas/Item"}


def test_names_are_those_that_openapi_allows() -> None:
    """Generic types have brackets."""
    components = SchemaComponents({})

    schema = components.add(a_list_of("Page[int]", **{"Page[int]": {"type": "object"}}))

    assert schema["items"] == {"$ref": "#/components/schemas/Page_int_"}
    assert components.schemas == {"Page_int_": {"type": "object"}}


def test_names_that_become_equal_stay_apart() -> None:
    """Both are definitions of one schema."""
    components = SchemaComponents({})

    schema = components.add({
        "properties": {"a": {"$ref": "#/$defs/P[a]"}, "b": {"$ref": "#/$defs/P(a)"}},
        "$defs": {"P[a]": {"type": "integer"}, "P(a)": {"type": "string"}},
    })  # fmt: skip

    found = [components.schemas[schema["properties"][name]["$ref"].rpartition("/")[2]] for name in "ab"]
    assert found == [{"type": "integer"}, {"type": "string"}]


def test_only_references_to_definitions_change() -> None:
    """A property may be called $ref."""
    schema = {"properties": {"$ref": {"type": "string"}}, "$ref": "#/elsewhere"}

    assert SchemaComponents({}).add(schema) == schema
