"""Functions shared with other tenants."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.tenancy_api import FunctionShareRequest
from pilotlight_gateway.http.endpoints.tenancy_services import TenancyServices
from pilotlight_gateway.http.protocol.api_operations import count_of, json_answer, principal_of, read_struct, truth_of
from pilotlight_gateway.tenancy.function_shares import (
    PAGE,
    PAGE_AT_MOST,
    page_of_shared,
    share_app,
    shares_of,
    unshare_app,
)


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
    asked = request.query_params
    page = page_of_shared(
        services.registry,
        principal_of(request).tenant,
        everybody=truth_of(request, "everybody"),
        owner=asked.get("owner", ""),
        after=asked.get("cursor", ""),
        limit=count_of(request, "limit", PAGE, PAGE_AT_MOST),
    )
    return json_answer(page)
