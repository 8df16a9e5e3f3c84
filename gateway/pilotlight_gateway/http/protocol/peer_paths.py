"""Addresses of other platforms' APIs, with what there is here: clients of theirs are pointed at this one first."""

from __future__ import annotations

OPENAI = "the OpenAI API is not served yet"
HERE = "POST /v1/functions/APP.FUNCTION/calls calls a function; GET /v1/apps lists them, /openapi.json describes all"
PATHS = (
    ("/v1/files", f"{OPENAI}; POST /v1/batches takes a file of inputs"),
    ("/v1/chat", OPENAI),
    ("/v1/completions", OPENAI),
    ("/v1/responses", OPENAI),
    ("/v1/embeddings", OPENAI),
    ("/v1/images", OPENAI),
    ("/v1/audio", OPENAI),
    ("/v1/moderations", OPENAI),
    ("/v1/models", f"{OPENAI}, nor is that of TensorFlow Serving and KServe (v1)"),
    ("/chat/completions", OPENAI),
    ("/predict", "a model has no address of its own"),
    ("/invocations", "a model has no address of its own"),
    ("/ping", "/healthz and /readyz say how the gateway is"),
    ("/health", "/healthz and /readyz say how the gateway is"),
    ("/docs", "/openapi.json describes the API"),
)
"""The beginning of an address -> what to know; the first that fits."""


def hint_of(path: str) -> str:
    """What whoever asks for an address that there is not probably wants; "" if that is not known."""
    for start, said in PATHS:
        if path == start or path.startswith(f"{start}/"):
            return said if said.startswith("/") else f"{said}: {HERE}"
    return ""
