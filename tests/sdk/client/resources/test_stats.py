"""The SDK's client reads what was counted."""

from __future__ import annotations

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.stats import StatsClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from tests.sdk.cli.seeing_answers import STATS, STATS_LIST
from tests.sdk.scripted import ScriptedPlatform, answer


async def test_a_window_is_asked_for_and_read(platform: ScriptedPlatform, connection: PlatformConnection) -> None:
    platform.will("GET", "/v1/functions/hello.greet/stats", answer(STATS))
    platform.will("GET", "/v1/stats", answer(STATS_LIST))
    client = StatsClient(PlatformClient(connection))
    one = await client.get_stats("hello.greet", "1h", "10m")
    every = await client.list_stats()
    assert (one.calls, one.durations.p95) == (1200, 80.5)
    assert [row.function for row in every.functions] == ["hello.greet"]
