"""What is shown of models and of the server: `GET /v2/…`."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.errors import PilotlightError, Unavailable
from pilotlight_gateway.http.inference.inference_counts import CountedModel
from pilotlight_gateway.http.inference.model_calls import ModelCalls
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.http.inference.model_views import config_view, model_view, server_view, statistics_view
from pilotlight_gateway.http.protocol.api_operations import json_answer, principal_of
from pilotlight_gateway.http.protocol.readiness import Readiness
from pilotlight_gateway.tenancy.registry_port import RegistryPort


@dataclass(frozen=True, kw_only=True)
class TensorModelServices:
    """The ports of these endpoints."""

    calls: ModelCalls
    registry: RegistryPort
    readiness: Readiness
    release: str
    """Of the platform, as the server's version."""


async def show_server(_: Request, services: TensorModelServices) -> Response:
    """`GET /v2`."""
    return json_answer(server_view(services.release))


async def show_live(_: Request, _services: TensorModelServices) -> Response:
    """`GET /v2/health/live`."""
    return json_answer({"live": True})


async def show_ready(_: Request, services: TensorModelServices) -> Response:
    """`GET /v2/health/ready`."""
    check_ready(services.readiness)
    return json_answer({"ready": True})


async def show_model(request: Request, services: TensorModelServices) -> Response:
    """`GET /v2/models/{model}`."""
    model = await _model_of(request, services)
    return json_answer(model_view(model, versions_of(services.registry, model)))


async def show_model_ready(request: Request, services: TensorModelServices) -> Response:
    """`GET /v2/models/{model}/ready`: it is deployed, and calls are taken; a container is started for the first."""
    model = await _model_of(request, services)
    check_ready(services.readiness)
    return json_answer({"name": model.name, "ready": True})


async def show_config(request: Request, services: TensorModelServices) -> Response:
    """`GET /v2/models/{model}/config`."""
    return json_answer(config_view(await _model_of(request, services)))


async def show_statistics(request: Request, services: TensorModelServices) -> Response:
    """`GET /v2/models/{model}/stats`, and `GET /v2/models/stats` of all that the caller's tenant has called."""
    counts, tenant = services.calls.counts, principal_of(request).tenant
    if "model" in request.path_params:
        model = await _model_of(request, services)
        counted = CountedModel(tenant, model.name, model.number)
        found = [(counted, counts.of_model(counted))]
    else:
        found = counts.of_tenant(tenant)
    return json_answer({"model_stats": [statistics_view(*one) for one in found]})


def not_offered(what: str) -> PilotlightError:
    """The refusal of an extension."""
    return PilotlightError(
        f"{what[:200]} is not offered: models are functions that are deployed with 'pilotlight deploy', memory is not "
        "shared with clients, and traces and logs are the platform's.",
        code="not_offered",
    )


def check_ready(readiness: Readiness) -> None:
    """Raises Unavailable: calls are not taken now."""
    if reason := readiness.why_not():
        raise Unavailable(f"Not ready: {reason}.", code="draining" if readiness.gate.leaving else "starting")


def versions_of(registry: RegistryPort, model: FoundModel) -> list[str]:
    """The versions of a model that are kept, oldest first."""
    version = model.version
    record = registry.app_nowait(version.tenant, version.app)
    if record is None:
        return [model.number]
    newest, gone = record.newest_number(version.function), record.forgotten.get(version.function, 0)
    return [str(number) for number in range(gone + 1, newest + 1)] or [model.number]


async def _model_of(request: Request, services: TensorModelServices) -> FoundModel:
    path, tenant = request.path_params, principal_of(request).tenant
    return await services.calls.lookup.find(tenant, path["model"], path.get("version", ""))
