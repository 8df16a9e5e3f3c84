"""Pairs of schemas of which it is known whether the new one takes all that the old one takes.

The old one is an object with some fields. The new one widens some, and, if it is to break, narrows or drops another one
so that some value of the old is refused. What is edited once is not edited again.
"""

from __future__ import annotations

import copy
import random
from typing import Any, NamedTuple

Schema = dict[str, Any]


class SchemaPair(NamedTuple):
    old: Schema
    new: Schema
    fits: bool
    how: str
    """What was edited."""


def schema_pair(chance: random.Random) -> SchemaPair:
    """A pair; every second one does not fit."""
    old = _object(chance, 2)
    new = copy.deepcopy(old)
    names = list(old["properties"])
    chance.shuffle(names)
    edits: list[str] = []
    fits = chance.random() < 0.5
    if not fits:
        edits.append(_narrow(chance, new, names.pop()))
    edits += [_widen(chance, new, name) for name in names if chance.random() < 0.4]
    if fits and not edits:
        new["properties"]["more"], edits = {"type": "string"}, ["a field more"]
    return SchemaPair(old, new, fits, ", ".join(edits))


def _object(chance: random.Random, depth: int) -> Schema:
    names = chance.sample(["prompt", "steps", "seed", "size", "tags", "mode", "user"], chance.randint(2, 5))
    properties = {name: _value(chance, depth) for name in names}
    required = [name for name in names if chance.random() < 0.5]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _value(chance: random.Random, depth: int) -> Schema:
    plain = ["integer", "number", "string", "enum"]
    kind = chance.choice([*plain, "null", "array", "object"] if depth else plain)
    match kind:
        case "integer" | "number":
            return {"type": kind, "minimum": chance.randint(0, 3), "maximum": chance.randint(10, 20)}
        case "string":
            text: Schema = {"type": "string", "minLength": chance.randint(0, 2), "maxLength": chance.randint(5, 9)}
            return text | ({"pattern": "^[a-z]*$"} if chance.random() < 0.1 else {})
        case "enum":
            listed: Schema = {"enum": ["low", "mid", "high"][: chance.randint(2, 3)]}
            return listed | ({"type": "string"} if chance.random() < 0.5 else {})
        case "null":
            return {"anyOf": [_value(chance, 0), {"type": "null"}], "default": None}
        case "array":
            return {"type": "array", "items": _value(chance, depth - 1), "maxItems": chance.randint(2, 4)}
    return _object(chance, depth - 1)


def _narrow(chance: random.Random, whole: Schema, name: str) -> str:
    """Have the new version refuse a value of this field, or its lack."""
    schema = whole["properties"][name]
    if name not in whole["required"] and chance.random() < 0.2:
        whole["required"].append(name)
        return f"{name} is required"
    if chance.random() < 0.15:
        del whole["properties"][name]
        whole["required"] = [one for one in whole["required"] if one != name]
        return f"{name} is gone"
    if chance.random() < 0.15:
        whole["properties"][name] = {"type": "boolean"}
        return f"{name} is something else"
    return f"{name}: {_narrowed(chance, schema)}"


def _narrowed(chance: random.Random, schema: Schema) -> str:
    if "anyOf" in schema:
        schema["anyOf"].pop()
        return "no null"
    if "enum" in schema:
        if chance.random() < 0.3:  # beside what it lists
            schema["maxLength"] = 3 if schema["enum"][-1] == "high" else 2
            return "fewer by their length"
        schema["enum"].pop()
        return "a value less"
    match schema["type"]:
        case "integer":
            schema["maximum"] -= 1
            return "less at most"
        case "number":
            if chance.random() < 0.5:
                schema["type"] = "integer"
                return "whole numbers"
            schema["minimum"] += 1
            return "more at least"
        case "string":
            schema["maxLength"] -= 1
            return "shorter"
        case "array":
            if chance.random() < 0.5:
                schema["maxItems"] -= 1
                return "fewer"
            return f"items: {_narrowed(chance, schema['items'])}"
    return _narrow(chance, schema, chance.choice(list(schema["properties"])))


def _widen(chance: random.Random, whole: Schema, name: str) -> str:
    """Have the new version take more for this field."""
    schema = whole["properties"][name]
    if name in whole["required"] and chance.random() < 0.3:
        whole["required"].remove(name)
        return f"{name} may lack"
    if chance.random() < 0.2:
        whole["properties"][name] = {"anyOf": [schema, {"type": "null"}]}
        return f"{name} may be null"
    if "anyOf" in schema:
        schema["anyOf"].append({"type": "boolean"})
    elif "enum" in schema:
        schema["enum"].append("most")
    elif schema["type"] in {"integer", "number"}:
        schema["maximum"] += chance.randint(1, 5)
        schema["type"] = "number"
    elif schema["type"] == "string":
        schema["maxLength"] += 1
        schema.pop("minLength")
    elif schema["type"] == "array":
        schema.pop("maxItems")
    else:
        schema["properties"]["more"] = {"type": "string"}
    return f"{name} is wider"
