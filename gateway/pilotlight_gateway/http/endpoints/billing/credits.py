"""What a tenant has paid ahead, and what has come of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.credit_api import CreditList, CreditRequest
from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.budgets.credit_grants import credit_list, day_at, end_credit, grant_credit
from pilotlight_gateway.budgets.prepaid_budgets import PrepaidBudgets
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, json_answer, principal_of, read_struct
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.tenants import visible_tenant


@dataclass(frozen=True, kw_only=True)
class CreditServices:
    """The ports of these endpoints. `wall`: unix seconds."""

    registry: RegistryPort
    prepaid: PrepaidBudgets
    budget: ByteBudget
    wall: Callable[[], float] = time.time


async def list_credits(request: Request, services: CreditServices) -> Response:
    """`GET /v1/tenants/{tenant}/credits`."""
    return json_answer(await _shown(services, await _tenant(request, services)))


async def post_credit(request: Request, services: CreditServices) -> Response:
    """`POST /v1/tenants/{tenant}/credits`."""
    tenant = await _tenant(request, services)
    asked = await read_struct(request, services.budget, CreditRequest)
    # Not only after it was given: who hears an error would give it again.
    await services.prepaid.spent_by_day(tenant, day_at(services.wall()))
    await grant_credit(services.registry, tenant, asked, services.wall())
    with suppress(PilotlightError):  # the tenant's home looks again
        await services.prepaid.refresh(tenant)
    return json_answer(await _shown(services, tenant), status=201)


async def drop_credit(request: Request, services: CreditServices) -> Response:
    """`DELETE /v1/tenants/{tenant}/credits/{grant}`."""
    tenant = await _tenant(request, services)
    await end_credit(services.registry, tenant, request.path_params["grant"], services.wall())
    await services.prepaid.refresh(tenant)
    return json_answer(await _shown(services, tenant))


async def _shown(services: CreditServices, tenant: str) -> CreditList:
    record, at = services.registry.credits(tenant), services.wall()
    if record is None or not record.grants:
        return credit_list(record, (), at)
    first = min(grant.begins for grant in record.grants)
    return credit_list(record, await services.prepaid.spent_by_day(tenant, first), at)


async def _tenant(request: Request, services: CreditServices) -> str:
    principal, name, to_change = principal_of(request), request.path_params["tenant"], request.method != "GET"
    return (await visible_tenant(services.registry, principal, name, to_change=to_change)).name


CREDITS = (
    Operation(
        method="GET", path="/v1/tenants/{tenant}/credits", name="listCredits", endpoint=list_credits,
        about="What a tenant has paid ahead, and how its spending has drawn on it.", scopes=("read", "operator"),
        answer=CreditList, errors=("not_found",),
    ),
    Operation(
        method="POST", path="/v1/tenants/{tenant}/credits", name="grantCredit", endpoint=post_credit, status=201,
        tells=("*",),
        about="Give a tenant credit.", scopes=("operator",), request=CreditRequest, answer=CreditList,
        errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/tenants/{tenant}/credits/{grant}", name="endCredit", endpoint=drop_credit,
        about="End a grant today: what is left of it lapses.", scopes=("operator",), answer=CreditList,
        errors=("not_found", "conflict"),
    ),
)  # fmt: skip
