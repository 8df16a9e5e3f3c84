"""The formats of instants and times in JSON Schemas: msgspec leaves them out where a time zone may be missing.

Examples are made by them: without a format an instant looks like any text.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect

FORMATS: dict[type, str] = {inspect.DateTimeType: "date-time", inspect.TimeType: "time"}


def add_time_formats(hint: Any, schema: Any, definitions: dict[str, Any]) -> None:
    """Name the format of each instant and time in a schema that msgspec made of `hint`, and in its definitions."""
    _add(inspect.type_info(hint), schema, definitions, set())


def _add(kind: Any, schema: Any, definitions: dict[str, Any], seen: set[str]) -> None:
    """`kind` may be another arm of a union than `schema`: then they have nothing in common."""
    if not isinstance(schema, dict):
        return
    if isinstance(kind, inspect.Metadata):
        _add(kind.type, schema, definitions, seen)
    elif type(kind) in FORMATS:
        if schema.get("type") == "string":  # of which a union has one at most
            schema.setdefault("format", FORMATS[type(kind)])
    elif isinstance(kind, inspect.UnionType):
        for arm in schema.get("anyOf", ()):
            for one in kind.types:
                _add(one, arm, definitions, seen)
    elif hasattr(kind, "fields"):
        _add_to_fields(kind, schema, definitions, seen)
    else:
        _add(getattr(kind, "item_type", None), schema.get("items"), definitions, seen)
        _add(getattr(kind, "value_type", None), schema.get("additionalProperties"), definitions, seen)
        for one, item in zip(getattr(kind, "item_types", ()), schema.get("prefixItems", ()), strict=False):
            _add(one, item, definitions, seen)


def _add_to_fields(kind: Any, schema: Any, definitions: dict[str, Any], seen: set[str]) -> None:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name in seen or name not in definitions or not name.startswith(kind.cls.__name__):
        return
    seen.add(name)
    properties = definitions[name].get("properties", {})
    for field in kind.fields:
        _add(field.type, properties.get(field.encode_name), definitions, seen)
