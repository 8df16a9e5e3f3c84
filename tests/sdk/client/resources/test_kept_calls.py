"""Kept calls over HTTP."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from pilotlight.client.resources.kept_calls import KeptCallsClient
from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from tests.sdk.cli.seeing_answers import EXPLAINED_CALL, JOB, KEPT_CALLS
from tests.sdk.scripted import ScriptedPlatform, answer


@pytest.fixture
def kept(connection: PlatformConnection) -> KeptCallsClient:
    return KeptCallsClient(PlatformClient(connection))


async def test_only_what_is_asked_for_is_sent(platform: ScriptedPlatform, kept: KeptCallsClient) -> None:
    """The platform has its own defaults."""
    platform.will("GET", "/v1/calls", answer(KEPT_CALLS))
    assert [call.id for call in (await kept.list_kept()).calls] == [JOB]
    await kept.list_kept("search.embed", "slow", 3)
    assert [parse_qs(request.query) for request in platform.requests] == [
        {}, {"function": ["search.embed"], "kept": ["slow"], "limit": ["3"]},
    ]  # fmt: skip


async def test_one_call_is_explained(platform: ScriptedPlatform, kept: KeptCallsClient) -> None:
    platform.will("GET", f"/v1/calls/{JOB}/explanation", answer(EXPLAINED_CALL))
    assert (await kept.explain_call(JOB)).sentences == tuple(EXPLAINED_CALL["sentences"])
