"""`GET /v1/models`: what a tenant's functions are served as."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.served.model_listing import ModelInfo, ModelListing
from pilotlight_gateway.deploys.served_models import ServedModel
from pilotlight_gateway.http.openai.model_calls import OpenAIServices, find_version
from pilotlight_gateway.http.protocol.api_operations import Operation, json_answer, principal_of
from pilotlight_gateway.http.protocol.error_dialects import Dialect


async def show_models(request: Request, services: OpenAIServices) -> Response:
    """`GET /v1/models`."""
    tenant = principal_of(request).tenant
    return json_answer(ModelListing(data=tuple(model_info(model, tenant) for model in services.models.listed(tenant))))


async def show_model(request: Request, services: OpenAIServices) -> Response:
    """`GET /v1/models/{model}`."""
    tenant = principal_of(request).tenant
    model, version = await find_version(services, tenant, request.path_params["model"])
    return json_answer(model_info(model, version.tenant, version.created_at))


def model_info(model: ServedModel, owner: str, created_at: float = 0.0) -> ModelInfo:
    """A model as OpenAI's clients know one, with what is behind it."""
    return ModelInfo(
        id=model.name, object="model", created=int(model.created_at or created_at), owned_by=owner,
        function=model.ref, parent=model.parent or None,
    )  # fmt: skip


MODEL_LIST = (
    Operation(
        method="GET", path="/v1/models", name="listModels", endpoint=show_models, answer=ModelListing,
        about="The models that the tenant's functions are served as.", scopes=("invoke", "read", "deploy"),
        dialect=Dialect.OPENAI,
    ),
    Operation(
        method="GET", path="/v1/models/{model}", name="getModel", endpoint=show_model, answer=ModelInfo,
        about="A model, by its name or by a function's ref.", scopes=("invoke", "read", "deploy"),
        dialect=Dialect.OPENAI, slashes=True, errors=("model_not_found", "bad_request"),
    ),
)  # fmt: skip
