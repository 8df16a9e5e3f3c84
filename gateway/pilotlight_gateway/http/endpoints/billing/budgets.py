"""What a tenant may spend."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.budget_api import BudgetInfo, BudgetList, BudgetRequest
from pilotlight_core.model.money.budgets import HomeTranches
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.budgets.budget_settings import budget_info, remove_budget, set_budget
from pilotlight_gateway.budgets.prepaid_budgets import PrepaidBudgets
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    json_answer,
    principal_of,
    read_struct,
)
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.tenants import visible_tenant


@dataclass(frozen=True, kw_only=True)
class BudgetServices:
    """The ports of these endpoints. `tranches` reads what a home has noted of a tenant; `wall`: unix seconds."""

    registry: RegistryPort
    prepaid: PrepaidBudgets
    tranches: Callable[[str], Awaitable[HomeTranches | None]]
    budget: ByteBudget
    wall: Callable[[], float] = time.time


async def list_budgets(request: Request, services: BudgetServices) -> Response:
    """`GET /v1/tenants/{tenant}/budgets`."""
    tenant = await _tenant(request, services)
    record, tranches = services.registry.budgets(tenant), await services.tranches(tenant)
    budgets = record.budgets if record is not None else ()
    return json_answer(BudgetList(budgets=tuple(budget_info(one, tranches, services.wall()) for one in budgets)))


async def put_budget(request: Request, services: BudgetServices) -> Response:
    """`PUT /v1/tenants/{tenant}/budgets`."""
    tenant = await _tenant(request, services)
    asked = await read_struct(request, services.budget, BudgetRequest)
    by_operator = principal_of(request).operator
    prepaid = await services.prepaid.amount(tenant) if asked.prepaid and by_operator else 0
    budget = await set_budget(services.registry, tenant, asked, by_operator=by_operator, prepaid=prepaid)
    return json_answer(budget_info(budget, await services.tranches(tenant), services.wall()))


async def drop_budget(request: Request, services: BudgetServices) -> Response:
    """`DELETE /v1/tenants/{tenant}/budgets/{budget}`."""
    tenant, name = await _tenant(request, services), request.path_params["budget"]
    await remove_budget(services.registry, tenant, name, by_operator=principal_of(request).operator)
    return Response(status_code=204)


async def _tenant(request: Request, services: BudgetServices) -> str:
    principal, name, to_change = principal_of(request), request.path_params["tenant"], request.method != "GET"
    return (await visible_tenant(services.registry, principal, name, to_change=to_change)).name


BUDGETS = (
    Operation(
        method="GET", path="/v1/tenants/{tenant}/budgets", name="listBudgets", endpoint=list_budgets,
        about="What a tenant may spend, and what is left of it.", scopes=("read", "operator"), answer=BudgetList,
        errors=("not_found",),
    ),
    Operation(
        method="PUT", path="/v1/tenants/{tenant}/budgets", name="setBudget", tells=("*",), endpoint=put_budget,
        about="Set the budget of a scope and a period, or replace it.", scopes=("admin", "operator"),
        request=BudgetRequest, answer=BudgetInfo, errors=(*BODY, "not_found", "unknown_function", "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/tenants/{tenant}/budgets/{budget}", name="removeBudget", endpoint=drop_budget,
        about="Remove a budget.", scopes=("admin", "operator"), status=204, errors=("not_found", "conflict"),
    ),
)  # fmt: skip
