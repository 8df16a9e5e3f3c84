"""Aliases: words for versions of functions."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.rollouts.alias_api import AliasInfo, AliasRequest
from pilotlight_core.model.ids import check_name
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.deploys.moves.app_aliases import AppAliases
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    json_answer,
    list_of,
    principal_of,
    read_struct,
)


@dataclass(frozen=True, kw_only=True)
class AliasServices:
    """The ports of these endpoints."""

    aliases: AppAliases
    budget: ByteBudget


async def list_aliases(request: Request, services: AliasServices) -> Response:
    """`GET /v1/apps/{app}/aliases`."""
    app = check_name(request.path_params["app"], "app")
    return json_answer({"app": app, "aliases": await services.aliases.list(principal_of(request).tenant, app)})


async def show_alias(request: Request, services: AliasServices) -> Response:
    """`GET /v1/apps/{app}/aliases/{name}/{alias}`."""
    return json_answer(await services.aliases.find(*_named(request)))


async def put_alias(request: Request, services: AliasServices) -> Response:
    """`PUT /v1/apps/{app}/aliases/{name}/{alias}`."""
    named = _named(request)
    asked = await read_struct(request, services.budget, AliasRequest)
    return json_answer(await services.aliases.put(*named, asked.version))


async def drop_alias(request: Request, services: AliasServices) -> Response:
    """`DELETE /v1/apps/{app}/aliases/{name}/{alias}`."""
    await services.aliases.delete(*_named(request))
    return Response(status_code=204)


def _named(request: Request) -> tuple[str, str, str, str]:
    """Tenant, app, function and alias of a request."""
    path = request.path_params
    app, function = check_name(path["app"], "app"), check_name(path["name"], "name")
    return principal_of(request).tenant, app, function, path["alias"]


ALIASES = (
    Operation(
        method="GET", path="/v1/apps/{app}/aliases", name="listAliases", endpoint=list_aliases,
        about="Words that stand for versions of an app's functions.", scopes=("read", "deploy"),
        answer=list_of("Aliases", AliasInfo), errors=("not_found", "bad_input"),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}/aliases/{name}/{alias}", name="getAlias", endpoint=show_alias,
        about="The version that an alias stands for.", scopes=("read", "deploy"), answer=AliasInfo,
        errors=("not_found", "bad_input"),
    ),
    Operation(
        method="PUT", path="/v1/apps/{app}/aliases/{name}/{alias}", name="putAlias", endpoint=put_alias,
        about="Let callers reach a version as app.function@alias.", scopes=("deploy",), tells=("version",),
        request=AliasRequest, answer=AliasInfo,
        errors=(*BODY, "not_found", "unknown_function", "unknown_version", "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/apps/{app}/aliases/{name}/{alias}", name="deleteAlias", endpoint=drop_alias,
        about="Delete an alias: calls that name it are refused.", scopes=("deploy",), status=204,
        errors=("not_found", "bad_input", "conflict"),
    ),
)  # fmt: skip
