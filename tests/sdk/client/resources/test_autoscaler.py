"""The size of functions over HTTP."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.autoscaler import AutoscalerClient
from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.errors import NotFound
from pilotlight_core.model.api.autoscaler_api import AutoscalerRequest
from tests.sdk.cli.every_command import BOUNDS
from tests.sdk.scripted import ScriptedPlatform, answer

PATH = "/v1/functions/hello.greet/autoscaler"


@pytest.fixture
def autoscaler(connection: PlatformConnection) -> AutoscalerClient:
    return AutoscalerClient(PlatformClient(connection))


async def test_only_what_is_given_is_said(platform: ScriptedPlatform, autoscaler: AutoscalerClient) -> None:
    """Null is something: as it is deployed."""
    platform.will("PATCH", PATH, answer(BOUNDS))
    found = await autoscaler.change_bounds("hello.greet", AutoscalerRequest(min_containers=2, max_containers=None))
    assert (found.function, found.min_containers.value, found.warm[0].containers) == ("hello.greet", 2, 2)
    assert platform.requests[0].json == {
        "min_containers": 2, "max_containers": None, "ends_at": None, "ends_in_s": None,
    }  # fmt: skip


async def test_what_holds_is_read_and_reset(platform: ScriptedPlatform, autoscaler: AutoscalerClient) -> None:
    platform.will("GET", PATH, answer(BOUNDS))
    platform.will("DELETE", PATH, answer(BOUNDS))
    assert await autoscaler.get_bounds("hello.greet") == await autoscaler.reset_bounds("hello.greet")


async def test_a_name_with_slashes_stays_one_part_of_the_path(
    platform: ScriptedPlatform, autoscaler: AutoscalerClient
) -> None:
    """Names are the user's."""
    platform.will("GET", "/v1/apps/x/autoscaler", answer(BOUNDS))
    with pytest.raises(NotFound):
        await autoscaler.get_bounds("../apps/x")
