"""The audit log, and its operation."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.audit_api import AuditList
from pilotlight_core.model.errors import Forbidden
from pilotlight_core.model.ids import NAME_PATTERN, check_name
from pilotlight_gateway.audit.audit_entries import AuditQuery
from pilotlight_gateway.audit.audit_log import AuditLog
from pilotlight_gateway.deploys.function_logs import SINCE_SCHEMA, read_since
from pilotlight_gateway.http.protocol.api_operations import (
    Operation,
    Parameter,
    count_of,
    json_answer,
    principal_of,
    truth_of,
)
from pilotlight_gateway.limits.tenant_slots import TenantSlots

SHOWN_BY_DEFAULT, SHOWN_AT_MOST = 100, 10_000
SINCE = "1d"
LONGEST_NAME = 64


@dataclass(frozen=True, kw_only=True)
class AuditServices:
    """The ports of this endpoint."""

    audit: AuditLog
    readers: TenantSlots = field(
        default_factory=lambda: TenantSlots(2, "read the audit log", of_tenant=1, retry_after=1.0)
    )


async def show_audit(request: Request, services: AuditServices) -> Response:
    """`GET /v1/audit`."""
    asked, caller = request.query_params, principal_of(request)
    tenant = check_name(asked["tenant"], "tenant") if "tenant" in asked else caller.tenant
    of_all = truth_of(request, "all")
    if not caller.operator and (of_all or tenant != caller.tenant):
        raise Forbidden("The changes of other tenants are shown to operators.", scope="operator")
    query = AuditQuery(
        tenant="" if of_all else tenant,
        since=min(read_since(asked.get("since", SINCE)), time.time()),
        limit=count_of(request, "limit", SHOWN_BY_DEFAULT, SHOWN_AT_MOST),
        operation=asked.get("operation", "")[:LONGEST_NAME],
        key=asked.get("key", "")[:LONGEST_NAME],
    )
    with services.readers.slot(caller.tenant):
        found = await services.audit.read(query)
    return json_answer(found if caller.operator else _for_tenant(found, caller.tenant))


def _for_tenant(found: AuditList, tenant: str) -> AuditList:
    """Without the addresses of others, such as operators."""
    entries = [one if one.by == tenant else msgspec.structs.replace(one, address="") for one in found.entries]
    return AuditList(entries=entries, more=found.more)


AUDIT = (
    Operation(
        method="GET", path="/v1/audit", name="listChanges", endpoint=show_audit, scopes=("admin", "operator"),
        about="Who changed what: the last changes of the caller's tenant; for operators of any, or of all.",
        answer=AuditList, errors=("bad_input", "overloaded", "rate_limited"),
        parameters=(
            Parameter(name="since", about="How long ago: 30m, 12h, 7d (a day); or unix seconds.", schema=SINCE_SCHEMA),
            Parameter(
                name="limit", about="At most so many, the last ones.",
                schema={"type": "integer", "minimum": 1, "maximum": SHOWN_AT_MOST},
            ),
            Parameter(name="operation", about="Only this operation's, such as setLimits."),
            Parameter(name="key", about="Only what was asked for with the key of this id."),
            Parameter(
                name="tenant", about="Another tenant's: for operators.",
                schema={"type": "string", "pattern": NAME_PATTERN},
            ),
            Parameter(name="all", about="Of all tenants: for operators.", schema={"type": "boolean"}),
        ),
    ),
)  # fmt: skip
