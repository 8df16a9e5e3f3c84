"""Throughput curves of versions, and trials to measure them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.curve_api import (
    CurveRequest,
    FunctionCurves,
    SliceKindInfo,
    Trial,
    TrialRequest,
    check_points,
    check_slice,
)
from pilotlight_core.model.errors import BadInput, UnknownFunction
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.deploys.deployer import Deployer
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.fleet.curve_trials import CurveService, loads_of
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, json_answer, principal_of, read_struct

UNKNOWN = ("bad_input", "unknown_function", "unknown_version")


@dataclass(frozen=True, kw_only=True)
class CurveServices:
    """The ports of these endpoints."""

    resolver: Resolver
    placements: FleetPlacements
    curves: CurveService
    deployer: Deployer
    budget: ByteBudget


async def show(request: Request, services: CurveServices) -> Response:
    """`GET /v1/functions/{ref}/curves`."""
    return json_answer(await _curves_info(await _own(request, services), services))


async def keep(request: Request, services: CurveServices) -> Response:
    """`PUT /v1/functions/{ref}/curves`."""
    version = await _own(request, services)
    given = await read_struct(request, services.budget, CurveRequest)
    check_slice(given.gpu, given.slice)
    check_points(given.points)
    kind = await _kind(version, given.gpu, given.slice, services)
    await services.curves.keep(version, given, software=kind.software, at=time.time())
    return json_answer(await _curves_info(version, services))


async def begin_trial(request: Request, services: CurveServices) -> Response:
    """`POST /v1/functions/{ref}/trials`."""
    version = await _own(request, services)
    asked = await read_struct(request, services.budget, TrialRequest)
    check_slice(asked.gpu, asked.slice)
    await _kind(version, asked.gpu, asked.slice, services)
    made = await services.deployer.trial(version, asked)
    return json_answer(Trial(ref=f"{made.app}.{made.function}@{made.id}", version_id=made.id), status=201)


async def _own(request: Request, services: CurveServices) -> VersionRecord:
    """A version of the caller's tenant, since a share does not include measuring; not of a trial."""
    tenant, ref = principal_of(request).tenant, request.path_params["ref"]
    version = await services.resolver.resolve(tenant, ref)
    if version.tenant != tenant:
        raise UnknownFunction(f"There is no function {ref}.")
    if version.spec.placing.slice:
        raise BadInput("This is a trial: name the version that it is a trial of.", field="ref")
    return version


async def _kind(version: VersionRecord, gpu: str, cut: str, services: CurveServices) -> SliceKindInfo:
    kinds = await services.placements.slices(version.spec)
    for kind in kinds:
        if (kind.gpu, kind.slice) == (gpu, cut):
            return kind
    known = ", ".join(f"{kind.gpu}/{kind.slice}" for kind in kinds) or "none"
    raise BadInput(f"The fleet has no {gpu}/{cut} that {version.ref} could run on; there are: {known}.", field="slice")


async def _curves_info(version: VersionRecord, services: CurveServices) -> FunctionCurves:
    return FunctionCurves(
        version=version.ref,
        version_id=version.id,
        curves=services.curves.known(version),
        slices=await services.placements.slices(version.spec),
        methods=loads_of(version.spec),
    )


CURVES = (
    Operation(
        method="GET", path="/v1/functions/{ref}/curves", name="getCurves", endpoint=show, scopes=("read", "deploy"),
        about="A version's throughput by slice, batch size and source, and the slices to measure it on.",
        answer=FunctionCurves, errors=UNKNOWN,
    ),
    Operation(
        method="PUT", path="/v1/functions/{ref}/curves", name="putCurve", endpoint=keep, scopes=("deploy",),
        about="Store measurements of a version on one kind of slice of the fleet.",
        request=CurveRequest, answer=FunctionCurves, errors=(*BODY, *UNKNOWN, "conflict"),
    ),
    Operation(
        method="POST", path="/v1/functions/{ref}/trials", name="beginTrial", endpoint=begin_trial, status=201,
        about="Create a copy of a version that runs in one container on one kind of slice, for measurements.",
        scopes=("deploy",), request=TrialRequest, answer=Trial, errors=(*BODY, *UNKNOWN, "not_found", "overloaded"),
    ),
)  # fmt: skip
