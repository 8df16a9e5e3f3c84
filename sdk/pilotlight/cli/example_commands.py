"""Command lines that work as printed, with example arguments from a function's schema."""

from __future__ import annotations

import os
import shlex
from typing import Any

import msgspec

from pilotlight.client.transport.config import API_KEY
from pilotlight.definitions.signature import ORDER
from pilotlight_core.model.spec import MethodSpec, Mode

EXAMPLES = {"string": "hello", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}, "null": None}


def example_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that the schema accepts: the required ones, or the first default."""
    properties: dict[str, Any] = schema.get("properties", {})
    names = [name for name in schema.get(ORDER, properties) if name in schema.get("required", ())]
    if not names:
        names = [name for name in schema.get(ORDER, properties) if properties[name].get("default") is not None][:1]
    definitions = schema.get("$defs", {})
    return {name: example_of(properties[name], definitions) for name in names}


def example_of(schema: Any, definitions: dict[str, Any], depth: int = 8) -> Any:
    """Return a value that the schema accepts, or None where none is easy to find."""
    if not isinstance(schema, dict) or depth == 0:
        return None
    for known in ("default", "const"):
        if known in schema:
            return schema[known]
    if schema.get("enum"):
        return schema["enum"][0]
    if "$ref" in schema:
        return example_of(definitions.get(schema["$ref"].rpartition("/")[2]), definitions, depth - 1)
    if schema.get("anyOf"):
        return example_of(schema["anyOf"][0], definitions, depth - 1)
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        required = schema.get("required", ())
        return {name: example_of(schema["properties"].get(name), definitions, depth - 1) for name in required}
    if kind == "array" and schema.get("prefixItems"):
        return [example_of(item, definitions, depth - 1) for item in schema["prefixItems"]]
    if kind in ("integer", "number") and "minimum" in schema:
        return schema["minimum"]
    return EXAMPLES.get(kind)


def curl_line(url: str, method: MethodSpec) -> str:
    """Return a curl command for an endpoint; its key comes from the environment or the client's file."""
    body: dict[str, Any] = {"input": example_arguments(method.input_schema)}
    if method.name:
        body = {"method": method.name, **body}
    key = f"${API_KEY}" if os.environ.get(API_KEY) else "$(pilotlight key show)"
    stream = ["-N", "-H", shlex.quote("Accept: text/event-stream")] if method.mode is Mode.GENERATOR else []
    words = [
        *("curl", shlex.quote(url), *stream, "-H", f'"Authorization: Bearer {key}"'),
        *("-H", shlex.quote("Content-Type: application/json"), "-d", shlex.quote(msgspec.json.encode(body).decode())),
    ]
    return " ".join(words)


def call_line(ref: str, method: MethodSpec) -> str:
    """Return the same with `pilotlight call`."""
    arguments = example_arguments(method.input_schema)
    words = [f"{name}={shlex.quote(_typed(value))}" for name, value in arguments.items()]
    return " ".join(["pilotlight call", f"{ref}.{method.name}" if method.name else ref, *words])


def _typed(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    if not isinstance(value, str):
        return text
    try:
        msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value  # it cannot be taken for anything but a string
    return text
