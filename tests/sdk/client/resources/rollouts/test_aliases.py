"""Aliases and going back, over HTTP."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.rollouts.aliases import AliasesClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.errors import NotFound
from tests.sdk.cli.rollout_answers import ALIAS
from tests.sdk.scripted import Answer, ScriptedPlatform, answer


@pytest.fixture
def aliases(connection: PlatformConnection) -> AliasesClient:
    return AliasesClient(PlatformClient(connection))


async def test_names_with_slashes_stay_one_part_of_the_path(platform: ScriptedPlatform, aliases: AliasesClient) -> None:
    """Whatever somebody calls an alias."""
    platform.will("DELETE", "/v1/apps/hello/aliases/greet/prod", Answer(status=204))

    await aliases.delete("hello", "greet", "prod")
    with pytest.raises(NotFound):
        await aliases.delete("hello", "x/../greet", "prod")


async def test_an_alias_is_set_and_listed(platform: ScriptedPlatform, aliases: AliasesClient) -> None:
    """The answers are the platform's."""
    platform.will("PUT", "/v1/apps/hello/aliases/greet/prod", answer(ALIAS))
    platform.will("GET", "/v1/apps/hello/aliases", answer({"aliases": [ALIAS]}))

    assert (await aliases.set("hello", "greet", "prod", "v1")).version == "hello.greet@v1"
    assert await aliases.list_aliases("hello") == [ALIAS]


async def test_going_back_says_what_runs_where(platform: ScriptedPlatform, aliases: AliasesClient) -> None:
    """Without a revision to the deploy before."""
    back = {"app": "hello", "revision": 4, "back_to": 1, "sentences": ["Calls go to hello.greet@v1."]}
    platform.will("POST", "/v1/apps/hello/rollback", answer(back))
    said = await aliases.roll_back("hello", reason="slow")

    assert (said.back_to, said.sentences) == (1, ("Calls go to hello.greet@v1.",))
    assert platform.requests[0].json == {"to": None, "reason": "slow"}
