"""Rollouts, over HTTP."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.rollouts.rollouts import RolloutsClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight_core.model.api.rollouts.rollout_api import RolloutRequest
from tests.sdk.cli.rollout_answers import ROLLOUT
from tests.sdk.scripted import ScriptedPlatform, answer


@pytest.fixture
def rollouts(connection: PlatformConnection) -> RolloutsClient:
    return RolloutsClient(PlatformClient(connection))


async def test_a_rollout_is_started_and_seen(platform: ScriptedPlatform, rollouts: RolloutsClient) -> None:
    """The answers are the platform's."""
    platform.will("POST", "/v1/apps/hello/rollout", answer({"rollout": ROLLOUT}, status=201))
    platform.will("GET", "/v1/apps/hello/rollout", answer(ROLLOUT))
    platform.will("GET", "/v1/apps/hello/rollouts", answer({"rollouts": [ROLLOUT]}))

    assert (await rollouts.start_rollout("hello", RolloutRequest(canary="v8"))).rollout.number == 3
    assert (await rollouts.rollout("hello")).state == "ramp"
    assert await rollouts.list_rollouts("hello") == [ROLLOUT]


async def test_a_word_is_sent(platform: ScriptedPlatform, rollouts: RolloutsClient) -> None:
    platform.will("POST", "/v1/apps/hello/rollout/pause", answer(ROLLOUT | {"paused_by": "key1"}))
    assert (await rollouts.send_word("hello", "pause", "Monday", rollout="rol_1")).paused_by == "key1"
    assert platform.requests[0].json == {"reason": "Monday", "rollout": "rol_1"}


async def test_those_of_all_apps_are_listed(platform: ScriptedPlatform, rollouts: RolloutsClient) -> None:
    """Of the caller's, or for operators of all tenants."""
    platform.will("GET", "/v1/rollouts", answer({"rollouts": [ROLLOUT], "left": 1}))
    found = await rollouts.list_all_rollouts()
    assert ([one.app for one in found.rollouts], found.left) == (["hello"], 1)
    await rollouts.list_all_rollouts(of_all=True)
    assert [request.query for request in platform.requests] == ["", "all=true"]
