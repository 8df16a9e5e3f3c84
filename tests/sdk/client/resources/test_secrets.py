"""Secrets over HTTP: values go in the body, and names are no paths."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.secrets import SecretsClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.errors import NotFound
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

SECRET = {"name": "token", "number": 1}


@pytest.fixture
def secrets(connection: PlatformConnection) -> SecretsClient:
    return SecretsClient(PlatformClient(connection))


async def test_a_value_is_in_the_body(platform: ScriptedPlatform, secrets: SecretsClient) -> None:
    """And nowhere else."""
    platform.will("PUT", "/v1/secrets/token", answer(SECRET))
    assert await secrets.set("token", "a value of mine") == SECRET

    (request,) = platform.requests
    assert request.json == {"value": "a value of mine"}


async def test_secrets_are_listed_and_removed(platform: ScriptedPlatform, secrets: SecretsClient) -> None:
    """As the platform has them."""
    platform.will("GET", "/v1/secrets", answer({"secrets": [SECRET]}))
    platform.will("DELETE", "/v1/secrets/token", Answer(status=204))
    assert await secrets.list_secrets() == [SECRET]
    await secrets.remove("token")
    assert platform.asked("/v1/secrets/token")


async def test_a_name_with_slashes_stays_one_part_of_the_path(
    platform: ScriptedPlatform, secrets: SecretsClient
) -> None:
    """It names nothing else."""
    platform.will("DELETE", "/v1/keys/k1", Answer(status=204))
    with pytest.raises(NotFound):
        await secrets.remove("../keys/k1")
    assert not platform.asked("/v1/keys/k1")
