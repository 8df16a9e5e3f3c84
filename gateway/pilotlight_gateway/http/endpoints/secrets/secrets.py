"""Secrets of a tenant. A value goes in and never comes out."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.secret_api import SecretInfo, SecretRequest
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    json_answer,
    list_of,
    principal_of,
    read_struct,
)
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits
from pilotlight_gateway.secrets.secret_service import list_secrets, remove_secret, secret_info, set_secret
from pilotlight_gateway.secrets.tenant_vault import TenantVault
from pilotlight_gateway.tenancy.registry_port import RegistryPort

LARGEST = BodyLimits(size=128 * 1024)
"""The largest value as JSON, with each character escaped."""


@dataclass(frozen=True, kw_only=True)
class SecretServices:
    """The ports of these endpoints."""

    vault: TenantVault
    registry: RegistryPort
    budget: ByteBudget


async def put(request: Request, services: SecretServices) -> Response:
    """`PUT /v1/secrets/{name}`."""
    asked = await read_struct(request, services.budget, SecretRequest, LARGEST)
    principal, name, at = principal_of(request), request.path_params["name"], time.time()
    record = await set_secret(services.vault, principal.tenant, name, asked.value, by=principal.key_id, at=at)
    return json_answer(secret_info(record, services.registry, at))


async def show_all(request: Request, services: SecretServices) -> Response:
    """`GET /v1/secrets`."""
    found = list_secrets(services.vault.store, services.registry, principal_of(request).tenant, time.time())
    return json_answer({"secrets": found})


async def delete(request: Request, services: SecretServices) -> Response:
    """`DELETE /v1/secrets/{name}`."""
    tenant, name = principal_of(request).tenant, request.path_params["name"]
    await remove_secret(services.vault.store, services.registry, tenant, name, time.time())
    return Response(status_code=204)


SECRETS = (
    Operation(
        method="PUT", path="/v1/secrets/{name}", name="setSecret", endpoint=put, scopes=("deploy",),
        about="Set a secret's value. Containers that have a former one are replaced in turn.", request=SecretRequest,
        answer=SecretInfo, errors=(*BODY, "conflict", "quota_exceeded", "misconfigured", "overloaded"),
    ),
    Operation(
        method="GET", path="/v1/secrets", name="listSecrets", about="The secrets, without their values.",
        endpoint=show_all, scopes=("read", "deploy"), answer=list_of("Secrets", SecretInfo),
    ),
    Operation(
        method="DELETE", path="/v1/secrets/{name}", name="removeSecret", status=204, endpoint=delete,
        about="Remove a secret that no function in service uses.", scopes=("deploy",),
        errors=("not_found", "bad_input", "conflict", "overloaded"),
    ),
)  # fmt: skip
