"""Weights of a tenant. Their parts are uploaded as blobs; here they get a name."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.weights_api import (
    PushResponse,
    RemovedWeights,
    WeightsDetail,
    WeightsInfo,
    WeightsRequest,
)
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.versions.pushed_weights import LEAST_DIGITS, WeightsRef, parse_weights
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.deploys.rules.weights_rules import read_push
from pilotlight_gateway.deploys.weights_pushes import PushedWeights
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    Parameter,
    json_answer,
    json_body,
    list_of,
    principal_of,
)
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits
from pilotlight_gateway.limits.tenant_slots import TenantSlots

LARGEST = BodyLimits(size=12 * 10**6)
"""For ten thousand parts of 600 bytes, and as much of a signature that lists them."""
DIGEST = Parameter(
    name="digest", about="Only the weights of this digest, which may be shortened.",
    schema={"type": "string", "pattern": f"^[0-9a-f]{{{LEAST_DIGITS},64}}$"},
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WeightsServices:
    """The ports of these endpoints."""

    weights: PushedWeights
    budget: ByteBudget
    pushes: TenantSlots
    """A push is megabytes of digests, each of which is looked for in the store."""


async def push(request: Request, services: WeightsServices) -> Response:
    """`PUT /v1/weights/{name}`."""
    name, principal = check_name(request.path_params["name"], "name"), principal_of(request)
    async with json_body(request, services.budget, LARGEST) as body:
        with services.pushes.slot(principal.tenant):
            # In a thread, since checks of ten thousand parts take a while.
            pushed = await asyncio.to_thread(read_push, body, name)
            return json_answer(await services.weights.push(principal, pushed))


async def show_all(request: Request, services: WeightsServices) -> Response:
    """`GET /v1/weights`."""
    return json_answer({"weights": await services.weights.listed(principal_of(request).tenant)})


async def show(request: Request, services: WeightsServices) -> Response:
    """`GET /v1/weights/{name}`."""
    return json_answer(await services.weights.shown(principal_of(request).tenant, _ref(request)))


async def delete(request: Request, services: WeightsServices) -> Response:
    """`DELETE /v1/weights/{name}`."""
    ref = _ref(request)
    gone = await services.weights.remove(principal_of(request).tenant, ref)
    return json_answer(RemovedWeights(name=ref.name, digests=gone))


def _ref(request: Request) -> WeightsRef:
    name = check_name(request.path_params["name"], "name")
    digest = request.query_params.get("digest")
    # An empty one is a client's mistake, by which it would remove all of the name.
    return WeightsRef(name) if digest is None else parse_weights(f"{name}@{digest}", "digest")


WEIGHTS = (
    Operation(
        method="PUT", path="/v1/weights/{name}", name="pushWeights", endpoint=push, scopes=("deploy",),
        about="Store weights under a name, or name the parts to upload first.", request=WeightsRequest,
        answer=PushResponse, errors=(*BODY, "conflict", "quota_exceeded", "not_found", "overloaded"),
    ),
    Operation(
        method="GET", path="/v1/weights", name="listWeights", about="The weights, and the functions that use them.",
        endpoint=show_all, scopes=("read", "deploy"), answer=list_of("Weights", WeightsInfo),
    ),
    Operation(
        method="GET", path="/v1/weights/{name}", name="getWeights", about="The files of weights.", endpoint=show,
        scopes=("read", "deploy"), answer=WeightsDetail, parameters=(DIGEST,),
        errors=("not_found", "bad_input", "overloaded"),
    ),
    Operation(
        method="DELETE", path="/v1/weights/{name}", name="removeWeights", endpoint=delete,
        about="Remove weights that no function in service uses.", scopes=("deploy",), answer=RemovedWeights,
        parameters=(DIGEST,), errors=("not_found", "bad_input", "conflict", "overloaded"),
    ),
)  # fmt: skip
