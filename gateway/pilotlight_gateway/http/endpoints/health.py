"""Health of the gateway."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.http.protocol.api_operations import json_answer
from pilotlight_gateway.http.protocol.readiness import Readiness


@dataclass(frozen=True, kw_only=True)
class HealthServices:
    """The ports of these endpoints."""

    readiness: Readiness


async def healthz(_request: Request, _services: HealthServices) -> Response:
    """`GET /healthz`: the process runs."""
    return json_answer({"status": "alive"})


async def readyz(_request: Request, services: HealthServices) -> Response:
    """`GET /readyz`: the gateway takes calls."""
    reason = services.readiness.why_not()
    if reason:
        raise Unavailable(f"Not ready: {reason}.", code="draining" if services.readiness.gate.leaving else "starting")
    return json_answer({"status": "ready"})
