"""Weights over HTTP, as the client asks for them."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.weights import WeightsClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.errors import NotFound
from pilotlight_core.model.api.weights_api import WeightsRequest
from pilotlight_core.model.versions.pushed_weights import WeightsRef
from tests.sdk.scripted import ScriptedPlatform, answer

REVISION = {"digest": "a" * 64, "files": 1, "size": 1, "pushed_at": 0.0, "pushed_by": "k"}


@pytest.fixture
def weights(connection: PlatformConnection) -> WeightsClient:
    return WeightsClient(PlatformClient(connection))


async def test_they_are_listed_shown_pushed_and_removed(platform: ScriptedPlatform, weights: WeightsClient) -> None:
    """A digest is a parameter of the address."""
    platform.will("GET", "/v1/weights", answer({"weights": [{"name": "m", "revisions": [REVISION]}]}))
    platform.will("GET", "/v1/weights/m", answer({"name": "m", "revision": REVISION, "contents": []}))
    platform.will("PUT", "/v1/weights/m", answer({"name": "m", "digest": "a" * 64, "size": 1}))
    platform.will("DELETE", "/v1/weights/m", answer({"name": "m", "digests": ["a" * 64]}))

    assert [one.name for one in await weights.list_weights()] == ["m"]
    assert (await weights.show(WeightsRef("m", "a" * 8))).revision.digest == "a" * 64
    assert (await weights.push("m", WeightsRequest(parts=()))).missing == ()
    assert (await weights.remove(WeightsRef("m"))).digests == ["a" * 64]


async def test_a_name_with_slashes_stays_one_part_of_the_path(
    platform: ScriptedPlatform, weights: WeightsClient
) -> None:
    """It names nothing else."""
    platform.will("DELETE", "/v1/keys/k1", answer({}))
    with pytest.raises(NotFound):
        await weights.remove(WeightsRef("../keys/k1"))
    assert not platform.asked("/v1/keys/k1")
