"""The OpenAPI document of one function, with an example that works."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from pilotlight_core.model.api.call_api import Latency, Usage
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.schema_examples import example_arguments
from pilotlight_core.model.spec import MethodSpec, Mode, VersionRecord
from pilotlight_gateway.http.protocol.openapi import REF, error_answer, problem_schema, security
from pilotlight_gateway.http.protocol.schema_components import SchemaComponents
from pilotlight_gateway.schemas.schema_validators import Validators

FunctionDocument = dict[str, Any]


def function_document(version: VersionRecord, base: str, owner: str = "") -> FunctionDocument:
    """The document of a version whose calls go to `base`; `owner`: if not the caller."""
    methods = version.spec.methods
    ref = f"{owner}:{version.app}.{version.function}" if owner else f"{version.app}.{version.function}"
    path = f"/v1/functions/{ref}/calls"
    _, own = msgspec.json.schema_components((Latency, Usage), ref_template=REF)
    components = SchemaComponents(own | {"Problem": problem_schema()})
    operation: FunctionDocument = {
        "operationId": f"call_{version.app}_{version.function}",
        "summary": f"Call {version.ref}",
        "requestBody": {
            "required": True,
            "content": {"application/json": _requests(components, methods)},
        },
        "responses": {"200": _answer(version, components, methods), "default": error_answer()},
        "x-codeSamples": [{"lang": "shell", "source": curl_line(base + path, methods[0])}],
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"{version.app}.{version.function}", "version": f"v{version.number}"},
        "servers": [{"url": base}],
        "paths": {path: {"post": operation}},
        "components": {"schemas": components.schemas, "securitySchemes": security()},
        "security": [{"key": []}],
    }


def curl_line(url: str, method: MethodSpec) -> str:
    """A shell command that calls the function."""
    body = msgspec.json.encode(_example(method)).decode()
    wants = " -N -H 'Accept: text/event-stream'" if method.mode is Mode.GENERATOR else ""
    return (
        f'curl{wants} -H "Authorization: Bearer $PILOTLIGHT_API_KEY" -H "Content-Type: application/json" '
        f"-d {shlex.quote(body)} {shlex.quote(url)}"
    )


def _example(method: MethodSpec) -> FunctionDocument:
    example: FunctionDocument = {"input": example_arguments(method.input_schema)}
    try:
        Validators().check_input("", method, example["input"], {})
    except BadInput:
        example["input"] = {}
    return example | ({"method": method.name} if method.name else {})


def _requests(components: SchemaComponents, methods: tuple[MethodSpec, ...]) -> FunctionDocument:
    return {
        "schema": _one_of([_request(components, method) for method in methods]),
        "examples": {method.name or method.attribute: {"value": _example(method)} for method in methods},
    }


def _request(components: SchemaComponents, method: MethodSpec) -> FunctionDocument:
    properties: FunctionDocument = {
        "input": components.add(method.input_schema) if method.input_schema else {"type": "object"},
        "deadline_ms": {"type": ["number", "null"], "exclusiveMinimum": 0},
        "id": {"type": ["string", "null"], "pattern": "^cid_[A-Za-z0-9_-]{8,60}$"},
    }
    required = ["input"] if method.input_schema.get("required") else []
    if method.name:
        properties["method"] = {"const": method.name}
        required.append("method")
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _answer(version: VersionRecord, components: SchemaComponents, methods: tuple[MethodSpec, ...]) -> FunctionDocument:
    def response(method: MethodSpec) -> FunctionDocument:
        value = components.add(method.output_schema)
        return {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "output": {"type": "array", "items": value} if method.mode is Mode.GENERATOR else value,
                "version": {"type": "string", "examples": [version.ref]},
                "usage": {"$ref": "#/components/schemas/Usage"},
                "latency": {"$ref": "#/components/schemas/Latency"},
                "cold_start": {"type": ["object", "null"]},
                "request_id": {"type": "string"},
            },
            "required": ["id", "output", "version", "usage", "latency"],
        }

    return {
        "description": "The answer; with 'Accept: text/event-stream' its stages, chunks and result as events.",
        "content": {
            "application/json": {"schema": _one_of([response(method) for method in methods])},
            "text/event-stream": {"schema": {"type": "string"}},
        },
    }


def _one_of(schemas: list[FunctionDocument]) -> FunctionDocument:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
