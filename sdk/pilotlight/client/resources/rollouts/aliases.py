"""Aliases of functions, and going back to what was deployed before."""

from __future__ import annotations

from urllib.parse import quote

from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight_core.model.api.rollouts.alias_api import AliasInfo, AliasRequest
from pilotlight_core.model.api.rollouts.rollback_api import RollbackRequest, RollbackResponse


class AliasesClient:
    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def list_aliases(self, app: str) -> list[Json]:
        """Return the aliases of an app's functions."""
        path = f"/v1/apps/{quote(app, safe='')}/aliases"
        return list((await self._platform.request("GET", path, answer_type=Json))["aliases"])

    async def set(self, app: str, function: str, alias: str, version: str) -> AliasInfo:
        """Let `app.function@alias` be the version `v7`, or one by its id."""
        body = AliasRequest(version=version)
        return await self._platform.request("PUT", _path(app, function, alias), body=body, answer_type=AliasInfo)

    async def delete(self, app: str, function: str, alias: str) -> None:
        await self._platform.send("DELETE", _path(app, function, alias))

    async def roll_back(self, app: str, to: int | None = None, reason: str = "") -> RollbackResponse:
        """Abort the rollout that is under way, or put the deploy before, or revision `to`, into service."""
        path, body = f"/v1/apps/{quote(app, safe='')}/rollback", RollbackRequest(to=to, reason=reason)
        return await self._platform.request("POST", path, body=body, answer_type=RollbackResponse)


def _path(app: str, function: str, alias: str) -> str:
    return f"/v1/apps/{quote(app, safe='')}/aliases/{quote(function, safe='')}/{quote(alias, safe='')}"
