"""OpenAPI documents of the API and of functions."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.http.protocol.api_operations import json_answer, principal_of
from pilotlight_gateway.http.protocol.forwarded_scheme import ProxyNetworks, client_scheme
from pilotlight_gateway.http.protocol.function_openapi import function_document
from pilotlight_gateway.schemas.version_schemas import VersionSchemas


@dataclass(frozen=True, kw_only=True)
class DocumentServices:
    """The ports of these endpoints."""

    openapi: bytes
    """The document of the whole API, as JSON."""
    resolver: Resolver
    schemas: VersionSchemas
    proxies: ProxyNetworks = ()
    """Whose word counts for how clients reach this gateway."""


async def show_openapi(_: Request, services: DocumentServices) -> Response:
    """`GET /openapi.json`."""
    return Response(services.openapi, media_type="application/json")


async def show_function(request: Request, services: DocumentServices) -> Response:
    """`GET /v1/functions/{ref}/openapi.json`."""
    tenant = principal_of(request).tenant
    version = await services.schemas.whole(await services.resolver.resolve(tenant, request.path_params["ref"]))
    base = f"{client_scheme(request.scope, services.proxies)}://{request.url.netloc}"
    return json_answer(function_document(version, base, "" if version.tenant == tenant else version.tenant))
