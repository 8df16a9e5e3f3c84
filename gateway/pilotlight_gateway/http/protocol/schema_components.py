"""A document's schemas: what schemas define for themselves becomes components, which every reader of OpenAPI finds."""

from __future__ import annotations

import re
from typing import Any

JsonSchema = dict[str, Any]
LOCAL = "#/$defs/"
COMPONENT = "#/components/schemas/"
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


class SchemaComponents:
    """The components of one document, by name; equal definitions are one."""

    def __init__(self, known: JsonSchema) -> None:
        self.schemas = dict(known)

    def add(self, schema: JsonSchema) -> JsonSchema:
        """The schema with its definitions (`$defs`) as components, and its references to them."""
        definitions: JsonSchema = schema.get("$defs", {})
        plain = {name: _NOT_A_NAME.sub("_", name) for name in definitions}
        as_named = {name: _pointed(definitions[name], plain) for name in definitions}
        names: dict[str, str] = {}
        for name, definition in as_named.items():
            names[name] = self._free_name(plain[name], definition)
            self.schemas[names[name]] = definition
        for name, chosen in names.items():
            self.schemas[chosen] = _pointed(definitions[name], names)
        pointed: JsonSchema = _pointed({key: value for key, value in schema.items() if key != "$defs"}, names)
        return pointed

    def _free_name(self, name: str, definition: JsonSchema) -> str:
        """`name`, unless another definition has it already: then with a number."""
        names = (name, *(f"{name}_{number}" for number in range(2, len(self.schemas) + 3)))
        return next(each for each in names if self.schemas.get(each, definition) == definition)


def _pointed(node: Any, names: dict[str, str]) -> Any:
    """A copy whose references to definitions lead to the components of these names."""
    if isinstance(node, list):
        return [_pointed(each, names) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _place(value, names) if key == "$ref" else _pointed(value, names) for key, value in node.items()}


def _place(reference: Any, names: dict[str, str]) -> Any:
    name = reference.removeprefix(LOCAL) if isinstance(reference, str) else ""
    return f"{COMPONENT}{names[name]}" if name in names else _pointed(reference, names)
