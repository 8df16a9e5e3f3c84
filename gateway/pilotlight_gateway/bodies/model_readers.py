"""Which request is read how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from pilotlight_gateway.bodies.embedding_requests import read_embedding
from pilotlight_gateway.bodies.generation_requests import read_chat, read_completion
from pilotlight_gateway.bodies.model_request import ModelRequest
from pilotlight_gateway.bodies.response_requests import read_response


class ModelRoute(StrEnum):
    """Routes of OpenAI's API that take requests to models."""

    CHAT = "chat"
    COMPLETION = "completion"
    RESPONSE = "response"
    EMBEDDING = "embedding"


READERS: Mapping[ModelRoute, Callable[[bytes], ModelRequest]] = {
    ModelRoute.CHAT: read_chat,
    ModelRoute.COMPLETION: read_completion,
    ModelRoute.RESPONSE: read_response,
    ModelRoute.EMBEDDING: read_embedding,
}
"""Each raises BadInput, `bad_request`, naming the field."""
