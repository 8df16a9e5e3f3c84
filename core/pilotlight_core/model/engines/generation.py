"""What the methods of an engine function take and give: the documents of `generate` and `embed`."""

from __future__ import annotations

from typing import Any

MAX_STOPS = 16
"""Texts at which an answer ends."""
MAX_STOP = 256
"""Characters of one of them."""
MAX_LOGPROBS = 20
MOST_INPUTS = 2048
"""Texts of one `embed`."""
MOST_EMBEDDED = 300_000
"""Tokens of all texts of one `embed`, as OpenAI has it; where one text may have more of them, as many as that. It is
billed for no more."""


def _object(
    method: str, properties: dict[str, Any], required: list[str], example: dict[str, Any], text: str
) -> dict[str, Any]:
    """The schema of a method's arguments, with the keys that those made of signatures have."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        "x-pilotlight-order": list(properties),
        "x-pilotlight-method": method,
        "description": text,
        "examples": [example],
    }


GENERATE_INPUT: dict[str, Any] = _object(
    "generate",
    {
        "prompt": {"type": ["string", "null"], "default": None},
        "prompt_ids": {"type": ["array", "null"], "items": {"type": "integer", "minimum": 0}, "default": None},
        "messages": {"type": ["array", "null"], "items": {"type": "object"}, "minItems": 1, "default": None},
        "max_tokens": {"type": ["integer", "null"], "minimum": 1, "default": None},
        "min_tokens": {"type": "integer", "minimum": 0, "default": 0},
        "temperature": {"type": "number", "minimum": 0, "maximum": 100, "default": 1.0},
        "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1.0},
        "top_k": {"type": "integer", "minimum": 0, "default": 0},
        "seed": {"type": ["integer", "null"], "default": None},
        "stop": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": MAX_STOPS, "default": []},
        "ignore_eos": {"type": "boolean", "default": False},
        "logprobs": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_LOGPROBS, "default": None},
        "adapter": {"type": "string", "default": ""},
        "tools": {"type": ["array", "null"], "items": {"type": "object"}, "default": None},
        "tool_choice": {"type": ["string", "object", "null"], "default": None},
        "response_format": {"type": ["object", "null"], "default": None},
    },
    [],
    {"prompt": "Once upon a time", "max_tokens": 16},
    "Exactly one of prompt, prompt_ids and messages. max_tokens null: what the model's context leaves.",
)
"""The generation document. Text, tokens and what they cost come as chunks, of which the last one has a
`finish_reason` and `usage`."""
EMBED_INPUT: dict[str, Any] = _object(
    "embed",
    {"input": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_INPUTS}},
    ["input"],
    {"input": ["Once upon a time"]},
    "Texts, for each of which there is a vector.",
)

EMBED_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"embeddings": {"type": "array"}, "prompt_tokens": {"type": "integer"}},
    "required": ["embeddings", "prompt_tokens"],
}


class UnfitGeneration(ValueError):
    """A generation document that its engine does not take; the message names the field. Nothing was generated."""
