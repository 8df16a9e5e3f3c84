"""Rewords msgspec's messages about wrong values for people who send JSON."""

from __future__ import annotations

import re

import msgspec

from pilotlight_core.model.api.call_api import LINE_PATTERN
from pilotlight_core.model.api.webhook_api import URL_PATTERN
from pilotlight_core.model.ids import END, FUNCTION_PATTERN, NAME_PATTERN, REF_PATTERN
from pilotlight_core.model.suggestions import did_you_mean, nearest

MEANINGS = {
    NAME_PATTERN: "a name of letters, digits, - and _, at most 63, that does not begin with -",
    FUNCTION_PATTERN: "a function, such as app.function or tenant:app.function",
    REF_PATTERN: "a function, such as app.function, app.function@v7 or tenant:app.function",
    LINE_PATTERN: "one line of text without hidden characters",
    URL_PATTERN: "a URL, such as https://example.com/hook",
}
_PATTERN = re.compile(r"Expected `str` matching regex (['\"])(.*)\1")
_CHOICE = re.compile(r"\^([a-z.\[\]]*)\(([a-z_|.\[\]]+)\)")


_EXPECTED = re.compile(r"Expected `([^`]+)`(.*?)(?:, got `([^`]+)`)?", re.DOTALL)
WORDS = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null", "bytes": "bytes",
}  # fmt: skip
"""Type names: msgspec's, and a plain one."""


def plain(sentence: str) -> str:
    """The message without regular expressions, Python type names and backticks."""
    found = _PATTERN.fullmatch(sentence)
    if found is None:
        return _of_types(sentence)
    pattern = found[2].replace("\\\\", "\\")
    if pattern in MEANINGS:
        return f"expected {MEANINGS[pattern]}"
    if choice := _CHOICE.fullmatch(pattern.removesuffix(END).removesuffix("$")):
        before = choice[1].replace("[.]", ".")
        return f"expected one of {', '.join(before + name for name in choice[2].replace('[.]', '.').split('|'))}"
    return f"expected text that matches {pattern.removesuffix(END)}"


def unknown_field(place: str, kind: type[msgspec.Struct] | None) -> str:
    """The message for an unknown field at `place`, such as `limits.brust`."""
    *above, name = place.split(".")
    known = _fields_at(kind, above)
    near = nearest(name, known)
    if near is not None:
        return f"unknown field.{did_you_mean(near)}"
    return f"unknown field; there are {', '.join(known)}" if 0 < len(known) <= MOST_LISTED else "unknown field"


MOST_LISTED = 32
"""Names in one message."""


def _of_types(sentence: str) -> str:
    found = _EXPECTED.fullmatch(sentence)
    if found is None:
        return sentence.replace("`", "")
    # "or null" is left out: who sends a wrong value wants to send one.
    wanted = " or ".join(WORDS.get(name, name) for name in found[1].split(" | ") if name != "null") or WORDS["null"]
    got = f", got {WORDS.get(found[3], found[3])}" if found[3] else ""
    return f"expected {wanted}{found[2]}{got}".replace("`", "")


def _fields_at(kind: type[msgspec.Struct] | None, above: list[str]) -> list[str]:
    for name in above:
        types = {} if kind is None else {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
        inner = types.get(name)
        kind = inner if isinstance(inner, type) and issubclass(inner, msgspec.Struct) else None
    return [] if kind is None else [field.encode_name for field in msgspec.structs.fields(kind)]
