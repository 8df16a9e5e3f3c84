"""Dialects: how an operation's errors are written. All are made of the one table of errors, `core.model.errors`.

    native   a problem document (RFC 9457), which has OpenAI's `error` object in it
    openai   `{"error": {"message", "type", "param", "code"}}`, as OpenAI's clients read it
    v2       `{"error": "text"}`, of the Open Inference Protocol

Status, Retry-After and the other headers are the same in all.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

ErrorDocument = dict[str, Any]


class Dialect(StrEnum):
    NATIVE = "native"
    OPENAI = "openai"
    V2 = "v2"


class ErrorShape(NamedTuple):
    """The body of an error in one dialect."""

    media_type: str
    shape: Callable[[ErrorDocument], ErrorDocument]
    """Makes it of the problem document."""
    schema_name: str
    """Among the components of the OpenAPI document."""


SHAPES = {
    Dialect.NATIVE: ErrorShape("application/problem+json", lambda problem: problem, "Problem"),
    Dialect.OPENAI: ErrorShape("application/json", lambda problem: {"error": problem["error"]}, "OpenAIError"),
    Dialect.V2: ErrorShape("application/json", lambda problem: {"error": problem["detail"]}, "InferenceError"),
}
