"""The gateways' load, for whoever scales them: Kubernetes' autoscaler or KEDA."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.autoscaler_api import GatewayLoadInfo, GatewayLoadTotal, GatewayScaling
from pilotlight_core.model.messages.scheduling import GatewayLoad
from pilotlight_gateway.http.protocol.api_operations import Operation, json_answer
from pilotlight_gateway.metrics.load_exchange import LoadBook


@dataclass(frozen=True, kw_only=True)
class ScalingServices:
    """The ports of these endpoints."""

    loads: LoadBook
    clock: Callable[[], float] = time.monotonic


async def show_gateways(_: Request, services: ScalingServices) -> Response:
    """`GET /v1/scaling/gateways`."""
    known = services.loads.known(services.clock())
    loads = [load for load, _ in known]
    return json_answer(
        GatewayScaling(
            gateways=tuple(_load_info(load, age_s) for load, age_s in known),
            sum=_total(loads, sum),
            most=_total(loads, lambda values: max(values, default=0.0)),
        )
    )


def _load_info(load: GatewayLoad, age_s: float) -> GatewayLoadInfo:
    return GatewayLoadInfo(
        gateway=load.gateway,
        name=load.name,
        age_s=round(max(0.0, age_s), 3),
        requests_per_s=load.requests_per_s,
        loop_lag_s=load.loop_lag_s,
        body_bytes=load.body_bytes,
        body_bytes_limit=load.body_bytes_limit,
        calls=load.calls,
    )


def _total(loads: list[GatewayLoad], of: Callable[[list[float]], float]) -> GatewayLoadTotal:
    return GatewayLoadTotal(
        gateways=len(loads),
        requests_per_s=of([load.requests_per_s for load in loads]),
        loop_lag_s=of([load.loop_lag_s for load in loads]),
        body_bytes=int(of([load.body_bytes for load in loads])),
        body_part=of([load.body_bytes / max(1, load.body_bytes_limit) for load in loads]),
        calls=int(of([load.calls for load in loads])),
    )


SCALING = (
    Operation(
        method="GET", path="/v1/scaling/gateways", name="getGatewayScaling", endpoint=show_gateways,
        about="How loaded the gateways are, each and together, for whoever scales them.",
        scopes=("operator",), answer=GatewayScaling,
    ),
)  # fmt: skip
