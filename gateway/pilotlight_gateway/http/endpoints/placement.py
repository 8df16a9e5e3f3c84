"""Placement: decisions explained, memory computed, the fleet shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.placement_api import (
    DecisionInfo,
    Explanation,
    FleetInfo,
    FunctionPlacement,
    PlacementQuestion,
)
from pilotlight_core.model.api.scaling_api import ScalingExplanation
from pilotlight_core.model.errors import BadInput, NotFound, Unavailable
from pilotlight_core.model.ids import FUNCTION_PATTERN, NAME_PATTERN, check_name, parse_ref
from pilotlight_core.model.messages.controller_questions import ExplainPlacement
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.versions.spec_checks import check_spec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.fleet.curve_trials import CurveService
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.placement_explainer import Explainer
from pilotlight_gateway.http.endpoints.prices import read_instant
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    MOST_PER_S,
    Operation,
    Parameter,
    json_answer,
    principal_of,
    rate_of,
    read_struct,
    truth_of,
)
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits
from pilotlight_gateway.tenancy.name_hints import check_explainable, check_no_app, no_container
from pilotlight_gateway.tenancy.registry_port import RegistryPort

SPEC_BODY = BodyLimits(size=256 * 1024)
"""For one spec: schemas of 64 KiB, and measured points of about 100 bytes each."""
ADVICE = "As a controller that only advises would have it; nothing of this is done:"
CONTAINER_PATTERN = r"^[A-Za-z0-9_.~-]{1,128}$"


@dataclass(frozen=True, kw_only=True)
class PlacementServices:
    """The ports of these endpoints."""

    registry: RegistryPort
    resolver: Resolver
    placements: FleetPlacements
    curves: CurveService
    explainer: Explainer
    budget: ByteBudget


async def show_fleet(_: Request, services: PlacementServices) -> Response:
    """`GET /v1/fleet`."""
    return json_answer(await services.placements.fleet())


async def show_function(request: Request, services: PlacementServices) -> Response:
    """`GET /v1/functions/{ref}/placement`: own functions only, since a share covers calls alone."""
    tenant = principal_of(request).tenant
    version = await services.resolver.resolve(tenant, request.path_params["ref"])
    if version.tenant != tenant:
        raise NotFound(f"There is no function {request.path_params['ref']}.", code="unknown_function")
    whose = class_of(version.spec, request.query_params.get("method"))
    curves = services.curves.book.of(version)
    rps = rate_of(request, "rps")
    placement = await services.placements.of_version(version, curves, rps)
    return json_answer(led_by(whose, placement))


def led_by(first: tuple[str, ...], placement: FunctionPlacement) -> FunctionPlacement:
    """The placement with `first` before its other lines."""
    return msgspec.structs.replace(placement, lines=(*first, *placement.lines)) if first else placement


def class_of(spec: FunctionSpec, method: str | None) -> tuple[str, ...]:
    """A line that says that placement concerns the class of `method`; none without `method`.

    Raises:
        BadInput: there is no such method.
    """
    if not method:
        return ()
    name = spec.method(method).name
    return (f"{name} is a method of the class {spec.name}: a container of it runs all of its methods.",)


async def plan(request: Request, services: PlacementServices) -> Response:
    """`POST /v1/placement/plan`: as `show_function`, for a function that is not deployed."""
    asked = await read_struct(request, services.budget, PlacementQuestion, SPEC_BODY)
    check_spec(asked.spec)
    check_name(asked.base, "base")
    whose = class_of(asked.spec, asked.method)
    tenant = principal_of(request).tenant
    return json_answer(led_by(whose, await services.placements.of_spec(asked.spec, tenant, asked.base)))


async def explain(request: Request, services: PlacementServices) -> Response:
    """`GET /v1/placement/explain`."""
    tenant = principal_of(request).tenant
    await check_no_app(services.registry, request.query_params.get("function", ""))
    asked = question(dict(request.query_params), tenant)
    whose: tuple[str, ...] = ()
    if asked.function:
        ref = parse_ref(asked.function)
        await check_explainable(services.registry, tenant, ref)
        if method := request.query_params.get("method"):
            owner = ref.tenant or tenant
            version = await services.resolver.resolve(owner, f"{owner}:{ref.app}.{ref.function}")
            whose = class_of(version.spec, method)
    reply = await services.explainer.explain(asked)
    if not reply.found:
        raise await _meant(services, tenant, asked.container) or NotFound(" ".join(reply.lines))
    decisions = msgspec.json.decode(reply.decisions, type=tuple[DecisionInfo, ...])
    return json_answer(Explanation(lines=(*whose, *reply.lines), decisions=decisions))


async def explain_function(request: Request, services: PlacementServices) -> Response:
    """`GET /v1/functions/{ref}/explanation`: own functions only; where its containers are is told to operators."""
    whose = principal_of(request)
    version = await services.resolver.resolve(whose.tenant, request.path_params["ref"])
    if version.tenant != whose.tenant:
        raise NotFound(f"There is no function {request.path_params['ref']}.", code="unknown_function")
    text = request.query_params.get("at", "")
    at = read_instant(text, "at") if text else 0.0
    name = f"{version.tenant}:{version.app}.{version.function}"
    asked = ExplainPlacement(function=name, scaling=True, at=at)
    if truth_of(request, "advised"):
        advice = msgspec.json.decode((await services.explainer.advise(asked)).scaling, type=ScalingExplanation)
        return json_answer(msgspec.structs.replace(advice, lines=(ADVICE, *advice.lines)))
    reply = await services.explainer.explain(asked)
    if not reply.scaling:
        message = "A controller of an older release leads, which explains no scaling: try again after the upgrade."
        raise Unavailable(message, code="starting", retry_after=30.0)
    told = msgspec.json.decode(reply.scaling, type=ScalingExplanation)
    if reply.found and not at and "operator" in whose.scopes:
        decisions = msgspec.json.decode(reply.decisions, type=tuple[DecisionInfo, ...])
        told = msgspec.structs.replace(told, lines=(*told.lines, *reply.lines), decisions=decisions)
    return json_answer(told)


async def _meant(services: PlacementServices, tenant: str, container: str) -> NotFound | None:
    there = services.placements.containers()
    if not container or container in there:
        return None
    return await no_container(services.registry, tenant, container, there)


def question(asked: dict[str, str], tenant: str) -> ExplainPlacement:
    """The question in query parameters: about a container, or a function, by default `tenant`'s.

    Raises:
        BadInput: names the parameter.
    """
    container, function, node = (asked.get(name, "") for name in ("container", "function", "why_not"))
    if container and not re.fullmatch(CONTAINER_PATTERN, container):
        raise BadInput("container: expected a container's id.", field="container")
    if function and not re.fullmatch(FUNCTION_PATTERN, function):
        hint = " All of its versions are explained: leave the part after @ out." if "@" in function else ""
        raise BadInput(f"function: expected app.function or tenant:app.function.{hint}", field="function")
    if node:
        check_name(node, "why_not")
    full = function if not function or ":" in function else f"{tenant}:{function}"
    return ExplainPlacement(container=container, function=full, node=node)


METHOD = Parameter(
    name="method", about="A method of a class; the answer is about the class.",
    schema={"type": "string", "pattern": NAME_PATTERN},
)  # fmt: skip
PLACEMENT = (
    Operation(
        method="GET", path="/v1/fleet", name="getFleet", about="Every GPU and slot, its parts and their containers.",
        endpoint=show_fleet, scopes=("operator",), answer=FleetInfo,
    ),
    Operation(
        method="GET", path="/v1/placement/explain", name="explainPlacement", endpoint=explain, scopes=("operator",),
        about="Why a container is where it is, the last decision on a function or all, or why a node was not chosen.",
        answer=Explanation, errors=("bad_input", "not_found", "unknown_function"),
        parameters=(
            Parameter(
                name="container", about="A container's id; it takes precedence over `function`.",
                schema={"type": "string", "pattern": CONTAINER_PATTERN},
            ),
            Parameter(
                name="function", about="app.function, or tenant:app.function.",
                schema={"type": "string", "pattern": FUNCTION_PATTERN},
            ),
            METHOD,
            Parameter(
                name="why_not", about="A node: why it was not chosen; given alone, by the last decision.",
                schema={"type": "string", "pattern": NAME_PATTERN},
            ),
        ),
    ),
    Operation(
        method="GET", path="/v1/functions/{ref}/placement", name="getPlacement", endpoint=show_function,
        about="How much GPU memory a function needs, and whether the fleet could hold it and its floor.",
        scopes=("read", "deploy"), answer=FunctionPlacement,
        errors=("bad_input", "unknown_function", "unknown_version"),
        parameters=(
            Parameter(
                name="rps", about="Calls per second, for the number of containers that they need.",
                schema={"type": "number", "exclusiveMinimum": 0, "maximum": MOST_PER_S},
            ),
            METHOD,
        ),
    ),
    Operation(
        method="GET", path="/v1/functions/{ref}/explanation", name="explainFunction", endpoint=explain_function,
        about="Why a function has the containers that it has, what is foretold, and what it would take to have more.",
        scopes=("read", "deploy"), answer=ScalingExplanation,
        errors=("bad_input", "not_found", "unknown_function", "unknown_version"),
        parameters=(
            Parameter(
                name="at", about="What was decided then: an instant with a zone, such as 2026-12-01T08:00:00Z.",
                schema={"type": "string"},
            ),
            Parameter(
                name="advised", about="What a controller with --advise would have, in place of the leader.",
                schema={"type": "boolean"},
            ),
        ),
    ),
    Operation(
        method="POST", path="/v1/placement/plan", name="planPlacement", endpoint=plan, scopes=("deploy",),
        changes=False,
        about="How much GPU memory a function would need, and whether the fleet could hold it, before it is deployed.",
        request=PlacementQuestion, answer=FunctionPlacement, errors=BODY,
    ),
)  # fmt: skip
