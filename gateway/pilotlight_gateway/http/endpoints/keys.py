"""API keys: an admin manages the tenant's own, the operator those of all tenants."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.tenancy_api import RotateRequest
from pilotlight_gateway.http.endpoints.tenancy_services import TenancyServices
from pilotlight_gateway.http.protocol.api_operations import json_answer, principal_of, read_struct, truth_of
from pilotlight_gateway.tenancy.api_keys import create_key, list_keys, revoke_key, rotate_key
from pilotlight_gateway.tenancy.tenants import visible_tenant


async def create(request: Request, services: TenancyServices) -> Response:
    """`POST /v1/keys` and `POST /v1/tenants/{tenant}/keys`."""
    tenant, operator = await _owner(request, services)
    asked = await read_struct(request, services.budget, KeyRequest, default=KeyRequest())
    made = await create_key(services.registry, tenant, asked, time.time(), by_operator=operator)
    return json_answer(made, status=201)


async def show_keys(request: Request, services: TenancyServices) -> Response:
    """`GET /v1/keys` and `GET /v1/tenants/{tenant}/keys`."""
    tenant, _ = await _owner(request, services)
    return json_answer({"keys": list_keys(services.registry, tenant)})


async def rotate(request: Request, services: TenancyServices) -> Response:
    """`POST /v1/keys/{id}/rotate` and `POST /v1/tenants/{tenant}/keys/{id}/rotate`."""
    tenant, operator = await _owner(request, services)
    asked = await read_struct(request, services.budget, RotateRequest, default=RotateRequest())
    key = request.path_params["id"]
    made = await rotate_key(services.registry, tenant, key, asked, time.time(), by_operator=operator)
    return json_answer(made, status=201)


async def revoke(request: Request, services: TenancyServices) -> Response:
    """`DELETE /v1/keys/{id}` and `DELETE /v1/tenants/{tenant}/keys/{id}`."""
    tenant, operator = await _owner(request, services)
    key, force = request.path_params["id"], truth_of(request, "force")
    return json_answer(await revoke_key(services.registry, tenant, key, time.time(), by_operator=operator, force=force))


async def _owner(request: Request, services: TenancyServices) -> tuple[str, bool]:
    """The tenant whose keys the path names, and whether the caller is an operator."""
    principal = principal_of(request)
    named = request.path_params.get("tenant")
    if named is None:
        return principal.tenant, principal.operator
    found = await visible_tenant(services.registry, principal, named, to_change=request.method != "GET")
    return found.name, principal.operator
