"""`GET /v1/models`: what a tenant's functions are served as."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_gateway.deploys.served_models import ServedModel
from pilotlight_gateway.http.openai.model_calls import ModelServices, find_version
from pilotlight_gateway.http.protocol.api_operations import Operation, json_answer, principal_of
from pilotlight_gateway.http.protocol.error_dialects import Dialect

OBJECT: dict[str, Any] = {"type": "object"}


async def show_models(request: Request, services: ModelServices) -> Response:
    """`GET /v1/models`."""
    tenant = principal_of(request).tenant
    listed = [model_document(model, tenant) for model in services.models.listed(tenant)]
    return json_answer({"object": "list", "data": listed})


async def show_model(request: Request, services: ModelServices) -> Response:
    """`GET /v1/models/{model}`."""
    tenant = principal_of(request).tenant
    model, version = await find_version(services, tenant, request.path_params["model"])
    return json_answer(model_document(model, version.tenant, version.created_at))


def model_document(model: ServedModel, owner: str, created_at: float = 0.0) -> dict[str, Any]:
    """A model as OpenAI's clients know one, with what is behind it."""
    document = {
        "id": model.name,
        "object": "model",
        "created": int(model.created_at or created_at),
        "owned_by": owner,
        "function": model.ref,
    }
    return document | ({"parent": model.parent} if model.parent else {})


MODELS = (
    Operation(
        method="GET", path="/v1/models", name="listModels", endpoint=show_models, answer=OBJECT,
        about="The models that the tenant's functions are served as.", scopes=("invoke", "read", "deploy"),
        dialect=Dialect.OPENAI,
    ),
    Operation(
        method="GET", path="/v1/models/{model}", name="getModel", endpoint=show_model, answer=OBJECT,
        about="A model, by its name or by a function's ref.", scopes=("invoke", "read", "deploy"),
        dialect=Dialect.OPENAI, slashes=True, errors=("model_not_found", "bad_request"),
    ),
)  # fmt: skip
