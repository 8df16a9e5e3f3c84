"""Rollouts of apps."""

from __future__ import annotations

from urllib.parse import quote

from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight_core.model.api.rollouts.rollout_api import (
    RolloutList,
    RolloutRequest,
    RolloutStarted,
    RolloutView,
    RolloutWord,
)


class RolloutsClient:
    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def start_rollout(self, app: str, request: RolloutRequest) -> RolloutStarted:
        """Start a rollout of an app's new versions."""
        return await self._platform.request("POST", _path(app), body=request, answer_type=RolloutStarted)

    async def rollout(self, app: str) -> RolloutView:
        """Return the rollout that is under way, or the last one."""
        return await self._platform.request("GET", _path(app), answer_type=RolloutView)

    async def list_rollouts(self, app: str) -> list[Json]:
        """Return an app's rollouts, the newest first."""
        path = f"/v1/apps/{quote(app, safe='')}/rollouts"
        return list((await self._platform.request("GET", path, answer_type=Json))["rollouts"])

    async def list_all_rollouts(self, *, of_all: bool = False) -> RolloutList:
        """Return of each app the rollout under way, or the last one; `of_all`: all tenants', for operators."""
        params = {"all": "true"} if of_all else {}
        return await self._platform.request("GET", "/v1/rollouts", params=params, answer_type=RolloutList)

    async def send_word(self, app: str, word: str, reason: str = "", *, rollout: str = "") -> RolloutView:
        """Pause, resume, promote, abort or freeze the rollout that is under way.

        `rollout`: the id of the one that is meant; of another nothing is done (`conflict`).
        """
        body = RolloutWord(reason=reason, rollout=rollout)
        return await self._platform.request("POST", f"{_path(app)}/{word}", body=body, answer_type=RolloutView)


def _path(app: str) -> str:
    return f"/v1/apps/{quote(app, safe='')}/rollout"
