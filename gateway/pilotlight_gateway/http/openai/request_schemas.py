"""The bodies of OpenAI's routes, for the platform's own document of its API.

They name what is needed and what is taken; other fields may be there.
"""

from __future__ import annotations

from typing import Any

BodySchema = dict[str, Any]
MODEL: BodySchema = {"type": "string", "minLength": 1, "description": "A name of GET /v1/models, or app.function."}
SHARED: dict[str, BodySchema] = {
    "model": MODEL,
    "stream": {"type": ["boolean", "null"]},
    "temperature": {"type": ["number", "null"]},
    "top_p": {"type": ["number", "null"]},
}
COUNT: BodySchema = {"type": ["integer", "null"], "minimum": 1}


def object_of(required: tuple[str, ...], **fields: BodySchema) -> dict[str, BodySchema]:
    """The schema of a JSON body, by its media type."""
    return {"application/json": {"type": "object", "properties": fields, "required": list(required)}}


CHAT = object_of(
    ("model", "messages"),
    **SHARED,
    messages={"type": "array", "items": {"type": "object"}},
    max_completion_tokens=COUNT,
    tools={"type": ["array", "null"], "items": {"type": "object"}},
)
COMPLETION = object_of(("model", "prompt"), **SHARED, prompt={"type": "string"}, max_tokens=COUNT)
RESPONSE = object_of(("model", "input"), **SHARED, input={"type": "string"}, max_output_tokens=COUNT)
TEXTS: BodySchema = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2048}
EMBEDDING = object_of(
    ("model", "input"),
    model=MODEL,
    input={
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2048}]
    },
    encoding_format={"enum": ["float", "base64"]},
)
