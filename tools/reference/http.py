"""The reference of the HTTP API, from its OpenAPI document."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import msgspec

import pilotlight_core.model
from pilotlight_core.model.errors import CODES
from pilotlight_gateway.http.protocol.openapi import document
from pilotlight_gateway.http.routes import OPERATIONS
from tools.reference.docstrings import anchor, code, field_docs, markdown, table

HEAD = """# HTTP API

Made from the same operations as `/openapi.json`. How to call and what events look like: [HTTP](../guide/http.md).

A request has the header `Authorization: Bearer pl_live_…`; a key needs one of the scopes named, and `admin` stands for
all but `operator` ([who may do what](../tenants.md#who-may-do-what)). An answer of 400 or more is a
[problem document](../guide/http.md#errors); its `code` is one of [these](#codes).
"""
REF = "#/components/schemas/"


def http_page() -> str:
    """The page."""
    whole = document(OPERATIONS)
    parts = [HEAD]
    for group in dict.fromkeys(map(_group, whole["paths"])):
        parts.append(f"## {group.capitalize()}")
        for path, methods in whole["paths"].items():
            for method, operation in methods.items() if _group(path) == group else ():
                parts += _operation(method.upper(), path, operation)
    schemas = whole["components"]["schemas"]
    known = structs()
    parts.append("## Bodies")
    for name in sorted(schemas):
        parts += _body(name, schemas[name], known.get(name))
    parts += ["## Codes", _codes()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _group(path: str) -> str:
    parts = path.strip("/").split("/")
    return parts[1] if parts[0] == "v1" else "health and documents"


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method} {path}`"
    yield operation["summary"]
    scopes = " or ".join(code(scope) for scope in operation.get("x-scopes", ()))
    yield f"Scope: {scopes}." if scopes else "Open: it needs no key."
    yield table(
        ("parameter", "in", "type", "is"),
        [
            (code(p["name"]), p["in"], type_text(p["schema"]), p.get("description", ""))
            for p in operation.get("parameters", ())
        ],
    )
    if body := operation.get("requestBody"):
        yield f"Body: {_content(body['content'])}."
    codes: list[str] = []
    for status, answer in operation["responses"].items():
        if int(status) < 400:
            content = _content(answer.get("content", {}))
            yield f"Answer {status}: {content or 'empty'}."
        else:
            codes += [said.partition(":")[0] for said in answer["description"].split("; ")]
    yield f"Errors: {', '.join(codes)}."


def _content(content: dict[str, Any]) -> str:
    """`CallRequest` as JSON or msgpack."""
    values = {kind: media for kind, media in content.items() if "json" in kind} or content
    shown = dict.fromkeys(type_text(media["schema"]) for media in values.values() if media["schema"])
    kinds = " or ".join(code(name) for name in content)
    return f"{' or '.join(shown)} ({kinds})" if shown else kinds


def type_text(schema: dict[str, Any]) -> str:
    """A schema as a few words, with a link to a body that has a name."""
    if ref := schema.get("$ref"):
        name = ref.removeprefix(REF)
        return f"[{name}](#{anchor(name)})"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(map(type_text, options)))
    if values := schema.get("enum"):
        return " or ".join(code(str(value)) for value in values)
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and (items := schema.get("items")):
        return f"list of {type_text(items)}"
    if kind == "object" and isinstance(values := schema.get("additionalProperties"), dict) and values:
        return f"object of {type_text(values)}"
    return str(schema.get("format") or kind)


def _body(name: str, schema: dict[str, Any], kind: type | None) -> Iterator[str]:
    yield f"### {name}"
    if kind is not None and kind.__doc__ and not kind.__doc__.startswith(f"{name}("):
        yield markdown(inspect.cleandoc(kind.__doc__))
    docs = field_docs(kind) if kind is not None else {}
    required = schema.get("required", ())
    yield table(
        ("field", "type", "default", "is"),
        [
            (code(field), type_text(value), "required" if field in required else _default(value), docs.get(field, ""))
            for field, value in schema.get("properties", {}).items()
        ],
    )
    if values := schema.get("enum"):
        yield " or ".join(code(str(value)) for value in values)


def _default(schema: dict[str, Any]) -> str:
    return code(msgspec.json.encode(schema["default"]).decode()) if "default" in schema else ""


def structs() -> dict[str, type]:
    """The classes of the vocabulary by name, for the docstrings of their fields."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(pilotlight_core.model.__path__, "pilotlight_core.model."):
        loaded = importlib.import_module(module.name)
        found |= {
            name: kind
            for name, kind in vars(loaded).items()
            if isinstance(kind, type) and kind.__module__ == loaded.__name__
        }
    return found


def _codes() -> str:
    rows = [(code(name), known.status, known.title, known.advice) for name, known in sorted(CODES.items())]
    return table(("code", "status", "what happened", "advice"), rows)
