"""Containers: the list of what runs, and the end of one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.placement_api import ContainerStopInfo, ContainerStopRequest
from pilotlight_core.model.errors import BadInput, NotFound
from pilotlight_core.model.ids import CONTAINER_PATTERN
from pilotlight_core.model.messages.controller_questions import StopContainer
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.fleet.container_stopper import ContainerStopper
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    Parameter,
    json_answer,
    principal_of,
    read_struct,
    truth_of,
)
from pilotlight_gateway.tenancy.name_hints import no_container
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.shown_names import shown_name

CONTAINER = re.compile(CONTAINER_PATTERN)
OF_THE_FLEET = ("node",)
"""What operators are told of a container: on which host it is."""
ROWS_OF_A_TURN = 64
"""A third of a millisecond."""


@dataclass(frozen=True, kw_only=True)
class ContainerServices:
    """The ports of these endpoints."""

    registry: RegistryPort
    calls: CallPort
    stopper: ContainerStopper
    budget: ByteBudget


async def show_containers(request: Request, services: ContainerServices) -> Response:
    """`GET /v1/containers`, with `all=true` those of all tenants."""
    principal = principal_of(request)
    tenant: str | None = principal.tenant
    if truth_of(request, "all"):
        principal.require("operator")
        tenant = None
    return json_answer({"containers": await _shown(services.calls.each_container(tenant), operator=principal.operator)})


async def _shown(rows: Iterator[dict[str, Any]], *, operator: bool) -> msgspec.Raw:
    """A list of containers as JSON. Of thousands that takes some ms, which calls that go on would have to wait: they
    have their turn after so many rows.
    """
    pieces: list[bytes] = []
    while some := list(islice(rows, ROWS_OF_A_TURN)):
        if not operator:
            some = [{name: value for name, value in each.items() if name not in OF_THE_FLEET} for each in some]
        pieces.append(msgspec.json.encode(some)[1:-1])
        await asyncio.sleep(0)
    return msgspec.Raw(b"[" + b",".join(pieces) + b"]")


async def stop_container(request: Request, services: ContainerServices) -> Response:
    """`POST /v1/containers/{container}/stop`: an owner its own, an operator any."""
    principal, name = principal_of(request), request.path_params["container"]
    if not CONTAINER.fullmatch(name):
        raise BadInput("container: expected an id, as 'GET /v1/containers' lists them.", field="container")
    asked = await read_struct(request, services.budget, ContainerStopRequest, default=ContainerStopRequest())
    reply = await services.stopper.stop(
        StopContainer(
            container=name,
            tenant="" if principal.operator else principal.tenant,
            within_ms=None if asked.grace_s is None else asked.grace_s * 1000.0,
            reason="stopped by an operator" if principal.operator else "stopped by its owner",
        )
    )
    if reply is None:
        there = (str(each["id"]) for each in services.calls.containers(principal.tenant))
        hint = await no_container(services.registry, principal.tenant, name, there)
        raise hint or NotFound(f"There is no container {name}.")
    node = shown_name(reply.node, operator=principal.operator)
    return json_answer(ContainerStopInfo(id=name, node=node, grace_s=reply.within_ms / 1000.0), status=202)


CONTAINERS = (
    Operation(
        method="GET", path="/v1/containers", name="listContainers", about="The containers that run now.",
        endpoint=show_containers, scopes=("read", "operator"), answer={"type": "object"}, errors=("bad_input",),
        parameters=(Parameter(name="all", about="For operators: all tenants'.", schema={"type": "boolean"}),),
    ),
    Operation(
        method="POST", path="/v1/containers/{container}/stop", name="stopContainer", tells=("*",), status=202,
        endpoint=stop_container,
        about="End a container: its calls have a grace, then it is killed. One that still starts ends at once.",
        scopes=("deploy", "operator"), request=ContainerStopRequest, body_required=False, answer=ContainerStopInfo,
        errors=(*BODY, "not_found", "starting"),
    ),
)  # fmt: skip
