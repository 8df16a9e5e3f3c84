"""Events over HTTP."""

from __future__ import annotations

from urllib.parse import parse_qs

import msgspec
import pytest

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.platform_events import PlatformEventsClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from tests.sdk.cli.seeing_answers import EVENTS
from tests.sdk.scripted import Answer, ScriptedPlatform, answer


@pytest.fixture
def events(connection: PlatformConnection) -> PlatformEventsClient:
    return PlatformEventsClient(connection, PlatformClient(connection))


async def test_events_are_asked_for_as_they_are_wanted(
    platform: ScriptedPlatform, events: PlatformEventsClient
) -> None:
    platform.will("GET", "/v1/events", answer(EVENTS))
    found = await events.list_events({"kind": "function", "since": "1h"})

    assert [one.kind for one in found.events] == ["function.scaled"]
    assert parse_qs(platform.requests[0].query) == {"kind": ["function"], "since": ["1h"]}


async def test_they_are_followed_as_they_come(platform: ScriptedPlatform, events: PlatformEventsClient) -> None:
    data = msgspec.json.encode(EVENTS["events"][0])
    body = b": keepalive\n\nid: 7\nevent: function.scaled\ndata: " + data + b"\n\n"
    platform.will("GET", "/v1/events", Answer(status=200, headers={"content-type": "text/event-stream"}, pieces=[body]))
    assert [one.id async for one in events.follow_events({})] == [7]
