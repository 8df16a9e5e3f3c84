"""Example values for JSON Schemas, which the functions that they describe take too."""

from __future__ import annotations

from typing import Any

SIMPLE: dict[str, Any] = {
    "string": "text", "integer": 1, "number": 1.0, "boolean": True, "null": None, "array": [], "object": {},
}  # fmt: skip
FORMATS = {
    "date-time": "2026-01-31T12:00:00Z", "date": "2026-01-31", "time": "12:00:00", "duration": "PT1S",
    "uuid": "7b1d3c9e-2f64-4e0a-9d5b-8c6f0a1e2d34", "decimal": "1.5",
}  # fmt: skip
BASE64 = "dGV4dA=="
NUMBERS = [1.0, 2.0]
"""An array or tensor: without an element most functions have nothing to work on."""
DEEPEST = 12
MOST_ITEMS = 100
MOST_VALUES = 1_000
ARRAY_KEY = "x-pilotlight"
"""Key of the schema of a numpy array or torch tensor."""
ORDER = "x-pilotlight-order"
"""Key of an input schema: the order of the parameters."""


def example_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that an input schema probably accepts: its own example, else the required ones, or the first with a
    default.

    The schema may say anything. They are in the order of the function's parameters, as far as it says one.
    """
    own = schema.get("examples")
    if isinstance(own, list | tuple) and own and isinstance(own[0], dict):
        return dict(own[0])
    properties = _dict(schema.get("properties"))
    order, required = schema.get(ORDER), schema.get("required")
    first = [name for name in order if isinstance(name, str)] if isinstance(order, list) else []
    names = [name for name in dict.fromkeys([*first, *properties]) if name in properties]
    needed = [name for name in names if isinstance(required, list | tuple) and name in required]
    if not needed:
        needed = [name for name in names if _dict(properties[name]).get("default") is not None][:1]
    return {name: example_of(properties[name], schema) for name in needed}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def example_of(schema: Any, root: Any = None) -> Any:
    """The schema's own example, or a simple value that probably fits; the caller validates it.

    References are resolved in `root`. A value without an end, or of more than MOST_VALUES parts, is None.
    """
    try:
        return _Example(schema if root is None else root).of(schema, 0)
    except _TooLarge:
        return None


class _TooLarge(Exception):
    pass


class _Example:
    """Makes one example. A schema of a few lines can ask for as many values as there are atoms: they are counted."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = MOST_VALUES

    def of(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise _TooLarge
        if not isinstance(schema, dict):
            return None
        for key in ("examples", "enum"):
            if schema.get(key):
                return schema[key][0]
        for key in ("default", "const"):
            if key in schema:
                return schema[key]
        if "$ref" in schema:
            return self.of(_found(self._root, schema["$ref"]), depth + 1)
        for key in ("anyOf", "oneOf", "allOf"):
            if schema.get(key):
                return self._first(schema[key], depth)
        return list(NUMBERS) if ARRAY_KEY in schema else self._of_type(schema, depth)

    def _first(self, arms: Any, depth: int) -> Any:
        """The first arm that ends: in a union that describes a tree that need not be the first."""
        for arm in arms[:-1]:
            try:
                return self.of(arm, depth + 1)
            except _TooLarge:
                continue
        return self.of(arms[-1], depth + 1)

    def _of_type(self, schema: dict[str, Any], depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else None)
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "object":
            properties = _dict(schema.get("properties"))
            return {name: self.of(properties.get(name, {}), depth + 1) for name in schema.get("required", ())}
        if kind == "array":
            return self._items(schema, depth)
        if kind in ("integer", "number"):
            return max(schema.get("minimum", SIMPLE[kind]), schema.get("exclusiveMinimum", 0) + 1)
        if kind == "string":
            return _text(schema)
        return SIMPLE.get(str(kind))

    def _items(self, schema: dict[str, Any], depth: int) -> list[Any]:
        first = [self.of(item, depth + 1) for item in schema.get("prefixItems", ())]
        items = schema.get("items", {})
        lack = min(MOST_ITEMS, schema.get("minItems", 0) - len(first))
        if lack <= 0 and not first and items:
            try:
                return [self.of(items, depth + 1)]
            except _TooLarge:  # a tree ends where a list of branches is empty
                return []
        return first + [self.of(items, depth + 1) for _ in range(lack)]


def _text(schema: dict[str, Any]) -> str:
    if (known := FORMATS.get(str(schema.get("format")))) is not None:
        return known
    if schema.get("contentEncoding") == "base64":
        return BASE64
    return str(SIMPLE["string"]).ljust(min(schema.get("minLength", 0), 1000), "x")[: schema.get("maxLength", 1000)]


def _found(root: Any, ref: str) -> Any:
    for step in ref.removeprefix("#").split("/")[1:]:
        root = root.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(root, dict) else {}
    return root
