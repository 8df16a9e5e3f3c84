"""The OpenAPI document of the API, made from its operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from pilotlight_core.model.api.issuer_api import ISSUER_NAME_PATTERN
from pilotlight_core.model.api.webhook_api import DELIVERY_PATTERN
from pilotlight_core.model.errors import CODES
from pilotlight_core.model.ids import CONTAINER_PATTERN, FUNCTION_PATTERN, MONTH_PATTERN, NAME_PATTERN, REF_PATTERN
from pilotlight_core.model.records.batches import ID_PATTERN as BATCH_PATTERN
from pilotlight_core.model.rollouts.alias_names import ALIAS_PATTERN
from pilotlight_core.model.strict import strict
from pilotlight_gateway.http.protocol.error_dialects import SHAPES, Dialect

if TYPE_CHECKING:
    from pilotlight_gateway.http.protocol.api_operations import Operation

OpenApiDocument = dict[str, Any]
REF = "#/components/schemas/{name}"
PLACES: dict[str, OpenApiDocument] = {
    "alias": {"pattern": ALIAS_PATTERN},
    "app": {"pattern": NAME_PATTERN},
    "tenant": {"pattern": NAME_PATTERN},
    "tier": {"pattern": NAME_PATTERN},
    "name": {"pattern": NAME_PATTERN},
    "grantee": {"pattern": NAME_PATTERN.replace("^", "^([*]|").replace("$", ")$")},
    "ref": {"pattern": REF_PATTERN},
    "function": {"pattern": FUNCTION_PATTERN},
    "sha256": {"pattern": "^[0-9a-f]{64}$"},
    "batch": {"pattern": BATCH_PATTERN},
    "container": {"pattern": CONTAINER_PATTERN},
    "issuer": {"pattern": ISSUER_NAME_PATTERN},
    "month": {"pattern": MONTH_PATTERN},
    "delivery": {"pattern": DELIVERY_PATTERN},
}
"""Schemas of path parameters."""
COMMON_ERRORS = ("internal", "starting")
GUARDED_ERRORS = (
    "unauthenticated", "key_expired", "token_invalid", "token_expired", "no_access", "issuer_unavailable", "forbidden",
    "rate_limited",
)  # fmt: skip


def document(operations: Iterable[Operation[Any]]) -> OpenApiDocument:
    """The whole document."""
    operations = tuple(operations)
    types = [
        kind
        for operation in operations
        for kind in (_asked(operation), operation.answer, operation.accepted)
        if _is_type(kind)
    ]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    by_type = dict(zip(types, schemas, strict=True))
    paths: OpenApiDocument = {}
    used = {SHAPES[operation.dialect].schema_name for operation in operations} | {"Problem"}
    errors = {name: schema for name, schema in error_schemas().items() if name in used}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pilotlight", "version": "1", "summary": "Serverless GPU functions."},
        "paths": paths,
        "components": {"schemas": components | errors, "securitySchemes": security()},
    }


def security() -> OpenApiDocument:
    """How callers authenticate."""
    return {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "pl_live_<id>_<secret>"}}


def reached_schema() -> OpenApiDocument:
    """The schema of `model.limits.ReachedLimit`."""
    text, number = {"type": "string"}, {"type": "number"}
    return {
        "type": "object",
        "properties": {
            "limit": text, "tenant": text, "function": text, "allowed": number, "burst": number, "left": number,
            "current": number,
        },
        "required": ["limit", "tenant", "allowed"],
    }  # fmt: skip


def problem_schema() -> OpenApiDocument:
    """The body of every error (RFC 9457)."""
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "type": text, "title": text, "status": {"type": "integer"}, "detail": text,
            "code": {"type": "string", "enum": sorted(CODES)}, "advice": text, "request_id": text,
            "retry_after": {"type": "number"}, "field": text, "traceback": text, "suggestion": text,
            "usage": {"type": "object", "description": "What the failed call is billed."},
            "limits": {"type": "array", "items": reached_schema()},
            "error": {
                "type": "object",
                "properties": {"message": text, "type": text, "param": {"type": ["string", "null"]}, "code": text},
            },
        },
        "required": ["type", "title", "status", "detail", "code", "advice", "request_id", "error"],
    }  # fmt: skip


def error_schemas() -> OpenApiDocument:
    """The bodies of errors by their names, in all dialects."""
    problem, text = problem_schema(), {"type": "string"}
    error = problem["properties"]["error"]
    openai, v2 = ({"type": "object", "properties": {"error": kind}, "required": ["error"]} for kind in (error, text))
    by_dialect = {Dialect.NATIVE: problem, Dialect.OPENAI: openai, Dialect.V2: v2}
    return {SHAPES[dialect].schema_name: schema for dialect, schema in by_dialect.items()}


def error_answer(codes: Iterable[str] = (), dialect: Dialect = Dialect.NATIVE) -> OpenApiDocument:
    """An answer that is an error, one of `codes`."""
    written = SHAPES[dialect]
    said = "; ".join(f"`{code}`: {CODES[code].title}" for code in codes)
    return {
        "description": said or "What went wrong.",
        "headers": {
            "x-request-id": {"schema": {"type": "string"}},
            "x-should-retry": {"schema": {"type": "string", "enum": ["true", "false"]}},
        },
        "content": {written.media_type: {"schema": {"$ref": REF.format(name=written.schema_name)}}},
    }


def _is_type(kind: Any) -> bool:
    return kind is not None and not isinstance(kind, dict)


def _asked(operation: Operation[Any]) -> Any:
    """The type of the request's body: unknown fields are refused."""
    return None if operation.request is None else strict(operation.request)


def _operation(operation: Operation[Any], by_type: dict[Any, OpenApiDocument]) -> OpenApiDocument:
    answer: OpenApiDocument = {
        "description": operation.about,
        "headers": {"x-request-id": {"schema": {"type": "string"}}},
    }
    if operation.answer is not None:
        schema = by_type[operation.answer] if _is_type(operation.answer) else operation.answer
        answer["content"] = {
            media: {"schema": schema if "json" in media else {"type": "string"}} for media in operation.answer_media
        }
    made: OpenApiDocument = {
        "operationId": operation.name,
        "summary": operation.about,
        "responses": {str(operation.status): answer} | _errors(operation),
        "security": [{"key": []}] if operation.scopes else [],
    }
    if operation.accepted is not None:
        later = {"application/json": {"schema": by_type[operation.accepted]}}
        made["responses"]["202"] = {"description": "It is stored, and will be carried out.", "content": later}
    parameters = _parameters(operation)
    if parameters:
        made["parameters"] = parameters
    if operation.scopes:
        made["x-scopes"] = list(operation.scopes)
    if operation.request_media and operation.method in ("POST", "PUT", "PATCH"):
        made |= _request_body(operation, by_type)
    return made


def _request_body(operation: Operation[Any], by_type: dict[Any, OpenApiDocument]) -> OpenApiDocument:
    schemas = operation.request_schemas
    if operation.request is None and operation.request_media == ("application/json",) and not schemas:
        return {}
    asked = _asked(operation)
    schema = by_type[asked] if asked is not None else {"type": "string", "format": "binary"}
    content = {media: {"schema": schemas.get(media, schema)} for media in operation.request_media}
    return {"requestBody": {"required": operation.body_required, "content": content}}


def _parameters(operation: Operation[Any]) -> list[OpenApiDocument]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"} | PLACES.get(name, {})}
        for name in re.findall(r"\{(\w+)", operation.path)
    ]
    asked = [
        {"name": asked.name, "in": asked.where, "description": asked.about, "schema": asked.schema}
        | ({"required": True} if asked.required else {})
        for asked in operation.parameters
    ]
    return named + asked


def _errors(operation: Operation[Any]) -> OpenApiDocument:
    codes = (*operation.errors, *COMMON_ERRORS, *(GUARDED_ERRORS if operation.scopes else ()))
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(CODES[code].status, []).append(code)
    return {str(status): error_answer(found, operation.dialect) for status, found in sorted(by_status.items())}
