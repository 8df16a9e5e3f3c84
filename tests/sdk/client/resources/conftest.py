"""What tests of the resources share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotlight.client.transport.config import ClientConfig
from pilotlight.client.transport.platform_connection import PlatformConnection
from tests.sdk.scripted import KEY, ScriptedPlatform


@pytest.fixture
async def connection(platform: ScriptedPlatform) -> AsyncIterator[PlatformConnection]:
    """A connection to the scripted platform, in the loop of the test."""
    made = PlatformConnection(ClientConfig(url=platform.url, api_key=KEY))
    yield made
    await made.aclose()
