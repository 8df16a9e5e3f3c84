"""What was counted of functions' calls: one function, all of a tenant, and as metrics for the tenant's Prometheus."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.seeing.tally_api import FunctionStats, StatsList
from pilotlight_core.model.errors import BadInput, UnknownFunction
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.deploys.resolver import Resolver, read_ref
from pilotlight_gateway.http.protocol.api_operations import (
    MINUTES_SCHEMA,
    Operation,
    Parameter,
    count_of,
    json_answer,
    minutes_of,
    principal_of,
)
from pilotlight_gateway.metrics.tenant_metrics import MEDIA_TYPES, TenantMetrics
from pilotlight_gateway.tally.tally_desk import TallyDesk
from pilotlight_gateway.tally.tally_views import function_stats, stats_list

MOST_MINUTES = 1_440
MOST_POINTS = 240
HOUR, TEN = 60, 10
MOST_ROWS = 500
DEFAULT_ROWS = 50


@dataclass(frozen=True, kw_only=True)
class StatsServices:
    """The ports of these endpoints."""

    tallies: TallyDesk
    resolver: Resolver
    calls: CallPort


async def show_stats(request: Request, services: StatsServices) -> Response:
    """`GET /v1/functions/{ref}/stats`: own functions only, since what others call is their owner's to know."""
    principal = principal_of(request)
    function = await own_function(services.resolver, principal.tenant, request.path_params["ref"])
    minutes = minutes_of(request, "window", MOST_MINUTES) or 10
    step = minutes_of(request, "step", minutes)
    check_step(minutes, step)
    window = await services.tallies.window(function, minutes)
    series = await services.tallies.series(function, minutes, step) if step else []
    return json_answer(function_stats(window, series, operator=principal.operator))


async def list_stats(request: Request, services: StatsServices) -> Response:
    """`GET /v1/stats`."""
    principal = principal_of(request)
    minutes = minutes_of(request, "window", MOST_MINUTES) or 10
    limit = count_of(request, "limit", DEFAULT_ROWS, MOST_ROWS)
    found = await services.tallies.tenant(principal.tenant, minutes)
    return json_answer(stats_list(found, limit, operator=principal.operator))


async def show_metrics(request: Request, services: StatsServices) -> Response:
    """`GET /v1/metrics`."""
    tenant = principal_of(request).tenant
    shown = TenantMetrics(await services.tallies.totals(tenant), services.calls.containers(tenant))
    body, media_type = shown.exposition(request.headers.get("accept", ""))
    return Response(body, headers={"content-type": media_type})


async def own_function(resolver: Resolver, tenant: str, text: str) -> str:
    """`tenant:app.function` of a ref that names a function of the tenant's own; its version does not matter.

    Raises:
        UnknownFunction: it is another's, or there is none. BadInput: it is no ref.
    """
    version = await resolver.resolve(tenant, text)
    if version.tenant != tenant:
        detail = f"{read_ref(text)} is another tenant's: what is counted of its calls is told to its owner."
        raise UnknownFunction(detail)
    return f"{version.tenant}:{version.app}.{version.function}"


def check_step(minutes: int, step: int) -> None:
    """Raises BadInput: there would be too many points, or such that nothing is known of."""
    if step and minutes > HOUR - 1 and step % TEN:
        raise BadInput("step: of an hour and longer windows there are steps of 10m, 20m and so on.", field="step")
    if step and minutes / step > MOST_POINTS:
        raise BadInput(f"step: that would be more than {MOST_POINTS} points: take a longer one.", field="step")


_WINDOW = Parameter(
    name="window", about="How far back from now: 10m (the default), 2h; at most 24h.", schema=MINUTES_SCHEMA
)
STATS = (
    Operation(
        method="GET", path="/v1/functions/{ref}/stats", name="getFunctionStats", endpoint=show_stats,
        about="What was counted of a function's calls lately: outcomes, latency by stage, batches, queue, containers. "
        "Within 2 %, and of all gateways that answer.",
        scopes=("read", "deploy"), answer=FunctionStats,
        errors=("bad_input", "unknown_function", "unknown_version", "overloaded"),
        parameters=(
            _WINDOW,
            Parameter(name="step", about="Also by steps of so long: 1m.", schema=MINUTES_SCHEMA),
        ),
    ),
    Operation(
        method="GET", path="/v1/stats", name="listStats", endpoint=list_stats, answer=StatsList,
        about="The same of all functions in short, those with the most calls first.",
        scopes=("read", "deploy"), errors=("bad_input", "overloaded"),
        parameters=(
            _WINDOW,
            Parameter(
                name="limit", about="Functions at most; 50 unless it is said.",
                schema={"type": "integer", "minimum": 1, "maximum": MOST_ROWS},
            ),
        ),
    ),
    Operation(
        method="GET", path="/v1/metrics", name="getTenantMetrics", endpoint=show_metrics,
        about="The tenant's own functions, for its Prometheus.",
        scopes=("read", "deploy"), answer={"type": "string"}, answer_media=MEDIA_TYPES, errors=("overloaded",),
    ),
)  # fmt: skip
