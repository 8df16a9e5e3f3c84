"""Issuers of tokens, how people log in at them, and who one is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.issuer_api import CallerInfo, IssuerInfo, IssuerRequest, LoginInfo
from pilotlight_core.model.records.issuers import IssuerRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    json_answer,
    list_of,
    principal_of,
    read_struct,
)
from pilotlight_gateway.oidc.issuer_book import issuer_info, login_infos, remove_issuer, set_issuer
from pilotlight_gateway.oidc.issuers import Issuers
from pilotlight_gateway.tenancy.api_keys import SCOPES
from pilotlight_gateway.tenancy.registry_port import IssuerRegistry


@dataclass(frozen=True, kw_only=True)
class IssuerServices:
    """The ports of these endpoints. `wall` is unix seconds, `clock` monotonic ones."""

    registry: IssuerRegistry
    issuers: Issuers
    budget: ByteBudget
    clock: Callable[[], float]
    wall: Callable[[], float] = time.time


async def list_issuers(_: Request, services: IssuerServices) -> Response:
    """`GET /v1/issuers`."""
    records = sorted(services.registry.issuers(), key=lambda record: record.name)
    return json_answer({"issuers": [_info(services, record) for record in records]})


async def put_issuer(request: Request, services: IssuerServices) -> Response:
    """`PUT /v1/issuers/{issuer}`."""
    asked = await read_struct(request, services.budget, IssuerRequest)
    name = request.path_params["issuer"]
    record = await set_issuer(services.registry, services.issuers.source, name, asked, services.wall())
    return json_answer(_info(services, record))


async def drop_issuer(request: Request, services: IssuerServices) -> Response:
    """`DELETE /v1/issuers/{issuer}`."""
    await remove_issuer(services.registry, request.path_params["issuer"])
    return Response(status_code=204)


async def list_logins(_: Request, services: IssuerServices) -> Response:
    """`GET /v1/logins`."""
    return json_answer({"logins": login_infos(services.registry.issuers())})


async def whoami(request: Request, services: IssuerServices) -> Response:
    """`GET /v1/whoami`."""
    principal = principal_of(request)
    origin, scopes = principal.origin, tuple(scope for scope in SCOPES if scope in principal.scopes)
    if origin is not None:
        about = CallerInfo(
            tenant=principal.tenant, key=principal.key_id, scopes=scopes, issuer=origin.issuer,
            subject=origin.subject, expires_at=origin.ends_at,
        )  # fmt: skip
        return json_answer(about)
    record = await services.registry.key(principal.key_id)
    about = CallerInfo(
        tenant=principal.tenant, key=principal.key_id, scopes=scopes, break_glass=principal.break_glass,
        expires_at=None if record is None else record.expires_at,
    )  # fmt: skip
    return json_answer(about)


def _info(services: IssuerServices, record: IssuerRecord) -> IssuerInfo:
    return issuer_info(record, services.issuers.keys.known(record), services.clock())


ISSUERS = (
    Operation(
        method="GET", path="/v1/issuers", name="listIssuers", endpoint=list_issuers, scopes=("operator",),
        about="The issuers whose tokens are taken in place of keys.", answer=list_of("Issuers", IssuerInfo),
    ),
    Operation(
        method="PUT", path="/v1/issuers/{issuer}", name="setIssuer", endpoint=put_issuer, scopes=("operator",),
        about="Take tokens of an issuer: for whom they are, and what their claims stand for.", tells=("*",),
        request=IssuerRequest, answer=IssuerInfo, errors=(*BODY, "conflict", "issuer_unavailable"),
    ),
    Operation(
        method="DELETE", path="/v1/issuers/{issuer}", name="removeIssuer", endpoint=drop_issuer, status=204,
        about="Take tokens of an issuer no more, from now on.", scopes=("operator",),
        errors=("bad_input", "not_found", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/logins", name="listLogins", endpoint=list_logins,
        about="The issuers at which people log in, and what their programs have to ask.",
        answer=list_of("Logins", LoginInfo),
    ),
    Operation(
        method="GET", path="/v1/whoami", name="getCaller", endpoint=whoami, scopes=SCOPES,
        about="What the platform takes the caller for.", answer=CallerInfo,
    ),
)  # fmt: skip
