"""The fixed inference API: one request for any function, and what was asked."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.api.call_api import Request


class InferenceRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/inference`."""

    model: str
    """`app.function`, `app.Class.method`, each with @v7 or without."""
    input: Any
    """The named arguments; or, if it is no object of those, the first one."""
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further named arguments."""


class InferenceMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a request beside its output."""

    tokens_used: int
    """Of prompt and completion, as the function counted them; 0 if it counts none."""
    latency_ms: float
    """From the request's arrival to its answer."""
    model_version: str


class InferenceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to it."""

    request_id: str
    output: Any
    metadata: InferenceMetadata


class InferenceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /internal/requests/{id}`."""

    request_id: str
    status: str
    """queued, running, succeeded, failed or cancelled."""
    model_version: str
    age_ms: float
    error: dict[str, Any] | None = None
