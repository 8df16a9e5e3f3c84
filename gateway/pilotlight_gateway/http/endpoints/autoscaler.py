"""The size of a function: what it is held to now, and people's word over what was deployed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.autoscaler_api import AutoscalerInfo, AutoscalerRequest
from pilotlight_core.model.errors import BadInput, UnknownFunction
from pilotlight_core.model.ids import parse_ref
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.deploys.scale_overrides import autoscaler_info, override_scale, reset_scale
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, json_answer, principal_of, read_struct
from pilotlight_gateway.tenancy.registry_port import RegistryPort

UNKNOWN = ("bad_input", "unknown_function", "unknown_version")


@dataclass(frozen=True, kw_only=True)
class AutoscalerServices:
    """The ports of these endpoints."""

    registry: RegistryPort
    resolver: Resolver
    budget: ByteBudget
    wall: Callable[[], float] = time.time
    """Unix seconds."""


async def show_autoscaler(request: Request, services: AutoscalerServices) -> Response:
    """`GET /v1/functions/{ref}/autoscaler`."""
    version = await _own(request, services)
    record = await services.registry.scale(version.tenant, version.app, version.function)
    return json_answer(autoscaler_info(version, record, services.wall()))


async def change_autoscaler(request: Request, services: AutoscalerServices) -> Response:
    """`PATCH /v1/functions/{ref}/autoscaler`."""
    version = await _own(request, services)
    asked = await read_struct(request, services.budget, AutoscalerRequest)
    at = services.wall()
    record = await override_scale(services.registry, version, asked, by=principal_of(request).key_id, at=at)
    return json_answer(autoscaler_info(version, record, at))


async def reset_autoscaler(request: Request, services: AutoscalerServices) -> Response:
    """`DELETE /v1/functions/{ref}/autoscaler`."""
    version = await _own(request, services)
    await reset_scale(services.registry, version)
    return json_answer(autoscaler_info(version, None, services.wall()))


async def _own(request: Request, services: AutoscalerServices) -> VersionRecord:
    """The deployed version of a function of the caller's tenant: a share does not include its size."""
    tenant, text = principal_of(request).tenant, request.path_params["ref"]
    ref = parse_ref(text)
    if ref.pin is not None:
        raise BadInput(f"ref: {text} names a version; expected a function, whose size is that of all.", field="ref")
    version = await services.resolver.resolve(tenant, text)
    if version.tenant != tenant:
        raise UnknownFunction(f"There is no function {text} of yours.")
    return version


AUTOSCALER = (
    Operation(
        method="GET", path="/v1/functions/{ref}/autoscaler", name="getAutoscaler", endpoint=show_autoscaler,
        about="The least and most containers of a function now, its buffer and window, and whose word each is.",
        scopes=("read", "deploy"), answer=AutoscalerInfo, errors=UNKNOWN,
    ),
    Operation(
        method="PATCH", path="/v1/functions/{ref}/autoscaler", name="changeAutoscaler", endpoint=change_autoscaler,
        tells=("*",),
        about="Say another size without a deploy, until an instant or until it is reset.",
        scopes=("deploy",), request=AutoscalerRequest, answer=AutoscalerInfo,
        errors=(*BODY, *UNKNOWN, "conflict", "quota_exceeded"),
    ),
    Operation(
        method="DELETE", path="/v1/functions/{ref}/autoscaler", name="resetAutoscaler", endpoint=reset_autoscaler,
        about="End all that was said of a function's size: what was deployed holds again.",
        scopes=("deploy",), answer=AutoscalerInfo, errors=(*UNKNOWN, "conflict"),
    ),
)  # fmt: skip
