"""Schemas as the library that compares them understands them whole, and what it does not understand. Pure.

It takes a `$ref`, an `enum` or a `const` for all that is said of a value, whatever stands beside: a reference with more
beside it becomes an `allOf`, and of listed values those are left that the rest allows. Some words it does not heed.
"""

from __future__ import annotations

import json
from typing import Any

NOTES = frozenset({
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id",
    "$defs", "format",
})  # fmt: skip
"""Words that forbid no value."""
BY_NAME = frozenset({"properties", "patternProperties", "$defs"})
"""Words whose value has schemas by names of the tenant's."""
VALUES = frozenset({"enum", "const", "default", "examples", "required", "dependentRequired"})
"""Words whose value is no schema."""
UNPROVEN = frozenset({"pattern", "format"})
"""Words whose changes are not judged."""
CHOICES = ("anyOf", "oneOf", "not", "if", "then", "else")
"""Words under which one schema is judged by what another one allows: what it does not judge counts there too."""
UNHEEDED = frozenset({"unevaluatedItems", "unevaluatedProperties", "dependentSchemas", "$dynamicRef"})
"""Words that make any change one that is not judged."""


def plain_schema(schema: Any) -> Any:
    """The same schema, without words beside those that hide them."""
    if isinstance(schema, list):
        return [plain_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {word: _plain_value(word, value) for word, value in schema.items()}
    notes = {word: value for word, value in whole.items() if word in NOTES}
    rules = {word: value for word, value in whole.items() if word not in NOTES}
    hiding = next((word for word in ("$ref", "const", "enum") if word in rules), None)
    if hiding is None or len(rules) == 1:
        return whole
    beside = {word: value for word, value in rules.items() if word != hiding}
    if hiding == "$ref" or "$ref" in json.dumps(beside):
        return notes | {"allOf": [{hiding: rules[hiding]}, plain_schema(beside)]}
    import jsonschema_rs  # here, since it takes 3 MB

    allows = jsonschema_rs.validator_for(beside)
    listed = [rules["const"]] if hiding == "const" else rules["enum"]
    left = [value for value in listed if allows.is_valid(value)]
    allowed: dict[str, Any] = {"enum": left} if left else {"not": {}}
    return notes | allowed


def _plain_value(word: str, value: Any) -> Any:
    if word in VALUES:
        return value
    if word in BY_NAME and isinstance(value, dict):
        return {name: plain_schema(each) for name, each in value.items()}
    return plain_schema(value)


def unjudged_words(old: Any, new: Any) -> list[str]:
    """The words for which nobody can say whether one of two different schemas fits the other."""
    before, after = _words(old, ""), _words(new, "")
    unheeded = {word for _, word, _ in before | after if word in UNHEEDED}
    return sorted(unheeded | {word for _, word, _ in before ^ after})


def _words(schema: Any, path: str, *, names: bool = False) -> set[tuple[str, str, str]]:
    """Where which of those words stands, with what. `names`: of the tenant's, and no words."""
    found: set[tuple[str, str, str]] = set()
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            found |= _words(each, f"{path}/{number}")
    elif isinstance(schema, dict):
        if not names and (choices := {word: schema[word] for word in CHOICES if word in schema}):
            inside = {word for _, word, _ in _words(list(choices.values()), "")}
            found |= {(path, word, json.dumps(choices, sort_keys=True)) for word in inside}
        for word, value in schema.items():
            if not names and word in UNPROVEN | UNHEEDED:
                found.add((path, word, json.dumps(value, sort_keys=True)))
            if names or word not in VALUES:
                found |= _words(value, f"{path}/{word}", names=not names and word in BY_NAME)
    return found
