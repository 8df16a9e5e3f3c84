"""Example values for JSON Schemas."""

from __future__ import annotations

from typing import Any

SIMPLE: dict[str, Any] = {
    "string": "text", "integer": 1, "number": 1.0, "boolean": True, "null": None, "array": [], "object": {},
}  # fmt: skip
DEEPEST = 12


def example_of(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """The schema's own example, or a simple value that probably fits; the caller validates it.

    References are resolved in `root`.
    """
    root = schema if root is None else root
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    if "$ref" in schema:
        return example_of(_found(root, schema["$ref"]), root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example_of(schema[key][0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: dict[str, Any], root: Any, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else None)
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: example_of(properties.get(name, {}), root, depth + 1) for name in schema.get("required", ())}
    if kind == "array":
        first = [example_of(item, root, depth + 1) for item in schema.get("prefixItems", ())]
        lack = max(0, schema.get("minItems", 1 if "items" in schema else 0) - len(first))
        return first + [example_of(schema.get("items", {}), root, depth + 1)] * min(lack, 100)
    if kind in ("integer", "number"):
        return max(schema.get("minimum", SIMPLE[kind]), schema.get("exclusiveMinimum", 0) + 1)
    if kind == "string":
        return SIMPLE["string"].ljust(min(schema.get("minLength", 0), 1000), "x")[: schema.get("maxLength", 1000)]
    return SIMPLE.get(str(kind))


def _found(root: Any, ref: str) -> Any:
    for step in ref.removeprefix("#").split("/")[1:]:
        root = root.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(root, dict) else {}
    return root
