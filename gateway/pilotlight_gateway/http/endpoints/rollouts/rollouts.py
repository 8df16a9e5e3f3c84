"""Rollouts of an app: one is started, seen, and told what to do."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.rollouts.rollout_api import (
    RolloutList,
    RolloutRequest,
    RolloutStarted,
    RolloutView,
    RolloutWord,
)
from pilotlight_core.model.errors import NotFound
from pilotlight_core.model.ids import check_name
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    Parameter,
    json_answer,
    list_of,
    principal_of,
    read_struct,
    truth_of,
)
from pilotlight_gateway.rollouts.rollout_desk import RolloutDesk

WORDS = ("pause", "resume", "promote", "abort", "freeze")


@dataclass(frozen=True, kw_only=True)
class RolloutServices:
    """The ports of these endpoints."""

    desk: RolloutDesk
    budget: ByteBudget


async def start_rollout(request: Request, services: RolloutServices) -> Response:
    """`POST /v1/apps/{app}/rollout`."""
    app = check_name(request.path_params["app"], "app")
    asked = await read_struct(request, services.budget, RolloutRequest, default=RolloutRequest())
    return json_answer(await services.desk.start(principal_of(request), app, asked), status=201)


async def show_rollout(request: Request, services: RolloutServices) -> Response:
    """`GET /v1/apps/{app}/rollout`."""
    app = check_name(request.path_params["app"], "app")
    return json_answer(await services.desk.views.show(principal_of(request).tenant, app))


async def list_rollouts(request: Request, services: RolloutServices) -> Response:
    """`GET /v1/apps/{app}/rollouts`."""
    app = check_name(request.path_params["app"], "app")
    return json_answer({"app": app, "rollouts": await services.desk.views.past(principal_of(request).tenant, app)})


async def list_all_rollouts(request: Request, services: RolloutServices) -> Response:
    """`GET /v1/rollouts`, with `all=true` those of all tenants."""
    principal = principal_of(request)
    tenant: str | None = principal.tenant
    if truth_of(request, "all"):
        principal.require("operator")
        tenant = None
    return json_answer(await services.desk.views.of_apps(tenant))


async def send_rollout_word(request: Request, services: RolloutServices) -> Response:
    """`POST /v1/apps/{app}/rollout/{word}`."""
    app, word = check_name(request.path_params["app"], "app"), request.path_params["word"]
    if word not in WORDS:
        raise NotFound(f"A rollout cannot be told {word!r}: there are {', '.join(WORDS)}.")
    asked = await read_struct(request, services.budget, RolloutWord, default=RolloutWord())
    return json_answer(await services.desk.send_word(principal_of(request), app, word, asked))


ROLLOUTS = (
    Operation(
        method="POST", path="/v1/apps/{app}/rollout", name="startRollout", endpoint=start_rollout,
        about="Start a rollout: new versions get the traffic by and by, and go back if they are worse.",
        scopes=("deploy",), tells=("canary", "steps", "skip_judging"), request=RolloutRequest, body_required=False,
        answer=RolloutStarted, status=201,
        errors=(*BODY, "not_found", "conflict", "rollout_running", "version_withdrawn"),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}/rollout", name="getRollout", endpoint=show_rollout,
        about="The rollout that is under way, or the last one.", scopes=("read", "deploy"), answer=RolloutView,
        errors=("not_found", "bad_input"),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}/rollouts", name="listRollouts", endpoint=list_rollouts,
        about="An app's rollouts, the newest first.", scopes=("read", "deploy"),
        answer=list_of("rollouts", RolloutView),
        errors=("not_found", "bad_input"),
    ),
    Operation(
        method="GET", path="/v1/rollouts", name="listAllRollouts", endpoint=list_all_rollouts,
        about="Of each app the rollout under way, or the last one: running ones first, then those that ended last.",
        scopes=("read", "deploy", "operator"), answer=RolloutList, errors=("bad_input", "forbidden"),
        parameters=(Parameter(name="all", about="For operators: all tenants'.", schema={"type": "boolean"}),),
    ),
    Operation(
        method="POST", path="/v1/apps/{app}/rollout/{word}", name="sendRolloutWord", endpoint=send_rollout_word,
        about="Tell a rollout what to do: pause, resume, promote, abort or freeze.", scopes=("deploy",),
        tells=("reason", "rollout"), request=RolloutWord, body_required=False, answer=RolloutView,
        errors=(*BODY, "not_found", "conflict"),
    ),
)  # fmt: skip
