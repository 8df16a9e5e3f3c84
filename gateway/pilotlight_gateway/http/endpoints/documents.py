"""The API describes itself."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_gateway.http.protocol.function_openapi import function_document
from pilotlight_gateway.http.protocol.http_services import HttpServices
from pilotlight_gateway.http.protocol.operations import json_answer, principal_of


async def show_openapi(request: Request, _services: HttpServices) -> Response:
    """`GET /openapi.json`."""
    return Response(request.app.openapi, media_type="application/json")


async def show_function(request: Request, services: HttpServices) -> Response:
    """`GET /v1/functions/{ref}/openapi.json`."""
    tenant = principal_of(request).tenant
    version = await services.resolver.resolve(tenant, request.path_params["ref"])
    base = f"{request.url.scheme}://{request.url.netloc}"
    return json_answer(function_document(version, base, "" if version.tenant == tenant else version.tenant))
