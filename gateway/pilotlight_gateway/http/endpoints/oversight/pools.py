"""Pools of nodes: what may be launched, and what is there."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.pools.pool_api import PoolInfo, PoolList
from pilotlight_core.model.api.pools.pool_terms import PoolTerms
from pilotlight_core.model.ids import check_name
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, json_answer, read_struct
from pilotlight_gateway.nodes.pool_book import (
    PoolRecords,
    drain_pool,
    pool_info,
    pool_infos,
    remove_pool,
    set_pool,
    show_pool,
)


@dataclass(frozen=True, kw_only=True)
class PoolServices:
    """The ports of these endpoints."""

    registry: PoolRecords
    budget: ByteBudget


async def list_pools(_: Request, services: PoolServices) -> Response:
    """`GET /v1/pools`."""
    return json_answer(PoolList(pools=pool_infos(services.registry)))


async def get_pool(request: Request, services: PoolServices) -> Response:
    """`GET /v1/pools/{pool}`."""
    return json_answer(await show_pool(services.registry, _named(request)))


async def put_pool(request: Request, services: PoolServices) -> Response:
    """`PUT /v1/pools/{pool}`."""
    terms = await read_struct(request, services.budget, PoolTerms)
    record = await set_pool(services.registry, _named(request), terms)
    return json_answer(pool_info(record, services.registry.launches()))


async def delete_pool(request: Request, services: PoolServices) -> Response:
    """`DELETE /v1/pools/{pool}`."""
    await remove_pool(services.registry, _named(request))
    return Response(status_code=204)


async def drain(request: Request, services: PoolServices) -> Response:
    """`POST /v1/pools/{pool}/drain`."""
    record = await drain_pool(services.registry, _named(request))
    return json_answer(pool_info(record, services.registry.launches()))


def _named(request: Request) -> str:
    return check_name(request.path_params["pool"], "pool")


CHANGED = ("bad_input", "not_found", "conflict")
POOLS = (
    Operation(
        method="GET", path="/v1/pools", name="listPools", endpoint=list_pools, scopes=("operator",), answer=PoolList,
        about="Pools of nodes: what the platform may launch, and the machines that it has launched.",
    ),
    Operation(
        method="GET", path="/v1/pools/{pool}", name="getPool", endpoint=get_pool, scopes=("operator",),
        about="One pool.", answer=PoolInfo, errors=("bad_input", "not_found"),
    ),
    Operation(
        method="PUT", path="/v1/pools/{pool}", name="setPool", endpoint=put_pool, scopes=("operator",),
        about="Make a pool, or replace what is said of one; a drained one is open again.", request=PoolTerms,
        answer=PoolInfo, tells=("provider", "purchase", "least_nodes", "most_nodes", "most_gpus", "most_usd_per_hour"),
        errors=(*BODY, "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/pools/{pool}", name="deletePool", endpoint=delete_pool, scopes=("operator",),
        about="Remove a pool that is drained and has no machine any more.", status=204, errors=CHANGED,
    ),
    Operation(
        method="POST", path="/v1/pools/{pool}/drain", name="drainPool", endpoint=drain, scopes=("operator",),
        about="Let all nodes of a pool go, as others take their place, and launch none.", answer=PoolInfo,
        errors=CHANGED,
    ),
)  # fmt: skip
