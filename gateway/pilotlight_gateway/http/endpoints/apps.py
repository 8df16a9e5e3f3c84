"""Apps: deploys, blobs and lists."""

from __future__ import annotations

import re
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.api.call_api import RenewRequest
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import MAX_BUNDLE_BYTES, AppRecord
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.deploys.app_records import app_info, deploy_lines
from pilotlight_gateway.deploys.blob_usage import BlobUsage, within_quota
from pilotlight_gateway.deploys.deployer import Deployer
from pilotlight_gateway.http.protocol.api_operations import json_answer, json_body, principal_of, read_struct
from pilotlight_gateway.http.protocol.http_exchange import exchange_of
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, pieces
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.limits.tenant_slots import TenantSlots
from pilotlight_gateway.tenancy.name_hints import known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort

DEPLOY_BODY = BodyLimits(size=6 * 10**6)
"""For ten thousand files and ten thousand parts of artifacts of 200 bytes each, and two megabytes of specs."""
BLOB_BODY = BodyLimits(size=MAX_BUNDLE_BYTES, window=10.0)
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class AppServices:
    """The ports of these endpoints."""

    registry: RegistryPort
    calls: CallPort
    deployer: Deployer
    blobs: BlobStore
    budget: ByteBudget
    codec: BodyCodec
    rates: ApiRates
    usage: BlobUsage
    uploads: TenantSlots
    deploys: TenantSlots
    locks: TenantSlots
    """A deploy may be 40 MB of values."""


async def list_apps(request: Request, services: AppServices) -> Response:
    """`GET /v1/apps`."""
    tenant = principal_of(request).tenant
    containers = services.calls.containers(tenant)
    deployed = (record for record in services.registry.iter_apps(tenant) if not record.ends_at)
    records = sorted(deployed, key=lambda record: record.app)
    return json_answer({"apps": [app_info(record, services.registry, containers, time.time()) for record in records]})


async def show_app(request: Request, services: AppServices) -> Response:
    """`GET /v1/apps/{app}`."""
    record = await _own(request, services)
    return json_answer(app_info(record, services.registry, services.calls.containers(record.tenant), time.time()))


async def show_history(request: Request, services: AppServices) -> Response:
    """`GET /v1/apps/{app}/history`, newest last."""
    record = await _own(request, services)
    return json_answer({"app": record.app, "history": deploy_lines(record)})


async def stop_app(request: Request, services: AppServices) -> Response:
    """`POST /v1/apps/{app}/stop`."""
    app = check_name(request.path_params["app"], "app")
    record = await services.deployer.stop(principal_of(request), app)
    return json_answer({"app": app, "revision": record.revision, "stopped": True})


async def delete_app(request: Request, services: AppServices) -> Response:
    """`DELETE /v1/apps/{app}`."""
    app = check_name(request.path_params["app"], "app")
    record = await services.deployer.delete(principal_of(request), app)
    return json_answer({"app": app, "revision": record.revision, "deleted": True})


async def renew_app(request: Request, services: AppServices) -> Response:
    """`POST /v1/apps/{app}/renew`."""
    app = check_name(request.path_params["app"], "app")
    asked = await read_struct(request, services.budget, RenewRequest)
    record = await services.deployer.renew(principal_of(request), app, asked.ends_in_s)
    return json_answer({"app": app, "ends_at": record.ends_at})


async def deploy_app(request: Request, services: AppServices) -> Response:
    """`POST /v1/apps/{app}/deploys`."""
    app = check_name(request.path_params["app"], "app")
    principal = principal_of(request)
    services.rates.take_deploy(principal.tenant)
    async with json_body(request, services.budget, DEPLOY_BODY) as body:
        with services.deploys.slot(principal.tenant):
            asked = await services.codec.read_deploy(body, app, principal.tenant)
            exchange_of(request.scope).asked = asked
            if not asked.requirements:
                return json_answer(await services.deployer.deploy(principal, app, asked))
        # Outside of the slots of deploys: a resolver may take a minute, and others need not wait for it.
        with services.locks.slot(principal.tenant):
            lock = await services.deployer.lock(principal, app, asked)
        with services.deploys.slot(principal.tenant):
            return json_answer(await services.deployer.deploy(principal, app, asked, lock))


async def put_blob(request: Request, services: AppServices) -> Response:
    """`PUT /v1/blobs/{sha256}`: streamed to the store."""
    sha256 = request.path_params["sha256"]
    if not SHA256.fullmatch(sha256):
        raise BadInput("sha256: expected 64 lower-case hexadecimal digits.", field="sha256")
    arriving: Any = pieces(request.scope, request.receive, BLOB_BODY)
    tenant = principal_of(request).tenant
    allowed = services.registry.limits(tenant, "").tenant.blob_bytes
    with services.uploads.slot(tenant):
        used = await services.usage.of(tenant) if allowed is not None else 0
        async with aclosing(arriving):
            size = await services.blobs.put(tenant, sha256, within_quota(arriving, tenant, allowed, used))
    services.usage.add(tenant, size)
    return json_answer({"sha256": sha256, "size": size}, status=201)


async def _own(request: Request, services: AppServices) -> AppRecord:
    app = check_name(request.path_params["app"], "app")
    return await known_app(services.registry, principal_of(request).tenant, app)
