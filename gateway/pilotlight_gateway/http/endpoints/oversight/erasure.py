"""Erasing a tenant, for operators."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.erasure_api import ErasureInfo, ErasureRequest
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.erasure.tenant_eraser import TenantEraser
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, json_answer, principal_of, read_struct


@dataclass(frozen=True, kw_only=True)
class ErasureServices:
    """The ports of these endpoints."""

    eraser: TenantEraser
    budget: ByteBudget


async def plan(request: Request, services: ErasureServices) -> Response:
    """`POST /v1/tenants/{tenant}/erasure`."""
    return json_answer(await services.eraser.plan(principal_of(request), request.path_params["tenant"]))


async def erase(request: Request, services: ErasureServices) -> Response:
    """`PUT /v1/tenants/{tenant}/erasure`."""
    asked = await read_struct(request, services.budget, ErasureRequest)
    name = request.path_params["tenant"]
    return json_answer(await services.eraser.erase(principal_of(request), name, asked.confirmation))


ERASURE = (
    Operation(
        method="POST", path="/v1/tenants/{tenant}/erasure", name="planErasure", endpoint=plan, scopes=("operator",),
        about="Disable a tenant, and say what erasing it deletes. Nothing is deleted; enabling it takes this back.",
        answer=ErasureInfo, errors=("not_found", "conflict", "starting", "overloaded", "misconfigured"),
    ),
    Operation(
        method="PUT", path="/v1/tenants/{tenant}/erasure", name="eraseTenant", endpoint=erase, scopes=("operator",),
        about="Erase a tenant: destroy its keys, then delete all of it but its lines in the ledger.",
        request=ErasureRequest, answer=ErasureInfo,
        errors=(*BODY, "not_found", "conflict", "starting", "overloaded", "misconfigured"),
    ),
)  # fmt: skip
