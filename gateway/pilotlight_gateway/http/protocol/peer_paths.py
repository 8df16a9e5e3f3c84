"""Addresses of other platforms' APIs, with what there is here: clients of theirs are pointed at this one first."""

from __future__ import annotations

OPENAI = "of the OpenAI API chats, completions, responses, embeddings, models, files and batches are served, below /v1"
HERE = "POST /v1/functions/APP.FUNCTION/calls calls a function; GET /v1/apps lists them, /openapi.json describes all"
PATHS = (
    ("/v1/images", OPENAI),
    ("/v1/audio", OPENAI),
    ("/v1/moderations", OPENAI),
    ("/v1/fine_tuning", OPENAI),
    ("/v1/assistants", OPENAI),
    ("/v1/threads", OPENAI),
    ("/v1/vector_stores", OPENAI),
    ("/chat", OPENAI),
    ("/completions", OPENAI),
    ("/responses", OPENAI),
    ("/embeddings", OPENAI),
    ("/models", OPENAI),
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
