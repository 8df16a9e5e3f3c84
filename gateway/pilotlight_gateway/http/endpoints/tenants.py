"""Tenants, their limits, and tiers."""

from __future__ import annotations

import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.tenancy_api import TenantChange, TenantRequest, TierRequest
from pilotlight_core.model.limits import FunctionLimits, Limits
from pilotlight_gateway.http.endpoints.tenancy_services import TenancyServices
from pilotlight_gateway.http.protocol.api_operations import json_answer, principal_of, read_struct, truth_of
from pilotlight_gateway.tenancy import tenant_limits, tenants


async def list_tenants(_: Request, services: TenancyServices) -> Response:
    """`GET /v1/tenants`."""
    records = sorted(services.registry.tenants(), key=lambda record: record.name)
    return json_answer({"tenants": [tenants.tenant_info(record) for record in records]})


async def create_tenant(request: Request, services: TenancyServices) -> Response:
    """`POST /v1/tenants`."""
    asked = await read_struct(request, services.budget, TenantRequest)
    record = await tenants.create_tenant(services.registry, asked, time.time(), services.limits.epoch(asked.name))
    return json_answer(tenants.tenant_info(record), status=201)


async def show_tenant(request: Request, services: TenancyServices) -> Response:
    """`GET /v1/tenants/{tenant}`."""
    name = request.path_params["tenant"]
    return json_answer(
        tenants.tenant_info(await tenants.visible_tenant(services.registry, principal_of(request), name))
    )


async def change_tenant(request: Request, services: TenancyServices) -> Response:
    """`PATCH /v1/tenants/{tenant}`."""
    asked = await read_struct(request, services.budget, TenantChange)
    name, principal = request.path_params["tenant"], principal_of(request)
    record = await tenants.change_tenant(services.registry, principal, name, asked)
    return json_answer(tenants.tenant_info(record))


async def show_limits(request: Request, services: TenancyServices) -> Response:
    """`GET /v1/tenants/{tenant}/limits`."""
    return json_answer(await tenant_limits.limits_info(services.registry, await _tenant(request, services)))


async def set_limits(request: Request, services: TenancyServices) -> Response:
    """`PUT /v1/tenants/{tenant}/limits`."""
    tenant = await _tenant(request, services)
    limits = await read_struct(request, services.budget, Limits)
    await tenant_limits.set_limits(services.registry, tenant, limits, home=services.limits.epoch(tenant))
    return json_answer(await tenant_limits.limits_info(services.registry, tenant))


async def clear_limits(request: Request, services: TenancyServices) -> Response:
    """`DELETE /v1/tenants/{tenant}/limits`."""
    await tenant_limits.clear_limits(services.registry, await _tenant(request, services))
    return Response(status_code=204)


async def show_function_limits(request: Request, services: TenancyServices) -> Response:
    """`GET /v1/tenants/{tenant}/limits/{function}`."""
    tenant, function = await _tenant_and_function(request, services)
    return json_answer(await tenant_limits.function_limits_info(services.registry, tenant, function))


async def set_function_limits(request: Request, services: TenancyServices) -> Response:
    """`PUT /v1/tenants/{tenant}/limits/{function}`."""
    tenant, function = await _tenant_and_function(request, services)
    if not truth_of(request, "ahead"):
        await tenant_limits.check_deployed(services.registry, function)
    asked = await read_struct(request, services.budget, FunctionLimits)
    limits = Limits(**msgspec.structs.asdict(asked))
    await tenant_limits.set_limits(services.registry, tenant, limits, function, home=services.limits.epoch(tenant))
    return json_answer(await tenant_limits.function_limits_info(services.registry, tenant, function))


async def clear_function_limits(request: Request, services: TenancyServices) -> Response:
    """`DELETE /v1/tenants/{tenant}/limits/{function}`."""
    tenant, function = await _tenant_and_function(request, services)
    await tenant_limits.clear_limits(services.registry, tenant, function)
    return Response(status_code=204)


async def list_tiers(_: Request, services: TenancyServices) -> Response:
    """`GET /v1/tiers`."""
    return json_answer({"tiers": tenant_limits.tier_infos(services.registry)})


async def show_tier(request: Request, services: TenancyServices) -> Response:
    """`GET /v1/tiers/{tier}`."""
    found = tenant_limits.known_tier(services.registry, request.path_params["tier"])
    return json_answer(tenant_limits.tier_info(services.registry, found))


async def put_tier(request: Request, services: TenancyServices) -> Response:
    """`PUT /v1/tiers/{tier}`."""
    asked = await read_struct(request, services.budget, TierRequest)
    tier = await tenant_limits.put_tier(services.registry, request.path_params["tier"], asked)
    return json_answer(tenant_limits.tier_info(services.registry, tier))


async def drop_tier(request: Request, services: TenancyServices) -> Response:
    """`DELETE /v1/tiers/{tier}`."""
    await tenant_limits.drop_tier(services.registry, request.path_params["tier"])
    return Response(status_code=204)


async def _tenant(request: Request, services: TenancyServices) -> str:
    principal, name, to_change = principal_of(request), request.path_params["tenant"], request.method != "GET"
    return (await tenants.visible_tenant(services.registry, principal, name, to_change=to_change)).name


async def _tenant_and_function(request: Request, services: TenancyServices) -> tuple[str, str]:
    tenant = await _tenant(request, services)
    return tenant, tenant_limits.full_name(tenant, request.path_params["function"])
