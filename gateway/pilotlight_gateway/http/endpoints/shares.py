"""Functions shared with other tenants."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.tenancy_api import FunctionShareRequest
from pilotlight_gateway.http.endpoints.tenancy_services import TenancyServices
from pilotlight_gateway.http.protocol.api_operations import json_answer, principal_of, read_struct
from pilotlight_gateway.tenancy.function_shares import share_app, shared_with, shares_of, unshare_app


async def list_shares(request: Request, services: TenancyServices) -> Response:
    """`GET /v1/apps/{app}/shares`."""
    shares = await shares_of(services.registry, principal_of(request).tenant, request.path_params["app"])
    return json_answer({"shares": shares})


async def put_share(request: Request, services: TenancyServices) -> Response:
    """`PUT /v1/apps/{app}/shares/{grantee}`."""
    asked = await read_struct(request, services.budget, FunctionShareRequest, default=FunctionShareRequest())
    app, grantee = request.path_params["app"], request.path_params["grantee"]
    return json_answer(await share_app(services.registry, principal_of(request).tenant, app, grantee, asked))


async def drop_share(request: Request, services: TenancyServices) -> Response:
    """`DELETE /v1/apps/{app}/shares/{grantee}`."""
    app, grantee = request.path_params["app"], request.path_params["grantee"]
    await unshare_app(services.registry, principal_of(request).tenant, app, grantee)
    return Response(status_code=204)


async def list_shared(request: Request, services: TenancyServices) -> Response:
    """`GET /v1/shared`: functions of other tenants that the caller may call."""
    return json_answer({"shared": shared_with(services.registry, principal_of(request).tenant)})
