"""`pilotlight calls`."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

from tests.sdk.cli.seeing_answers import JOB, KEPT_CALLS
from tests.sdk.cli.shell import cells, invoke
from tests.sdk.scripted import ScriptedPlatform, answer


def test_kept_calls_are_listed_and_silent_gateways_named(platform: ScriptedPlatform) -> None:
    """Of one function, and kept for one reason."""
    platform.will("GET", "/v1/calls", answer(KEPT_CALLS))
    done = invoke("calls", "--function", "search.embed", "--kept", "error", "--limit", "3")
    assert cells(done.stdout)[1][0] == JOB
    assert "start 39,000 ms (cold)" in done.stdout
    assert "gateway-2" in done.stderr
    assert parse_qs(platform.requests[0].query) == {"function": ["search.embed"], "kept": ["error"], "limit": ["3"]}


def test_none_is_a_sentence_and_data_is_whole(platform: ScriptedPlatform) -> None:
    platform.will("GET", "/v1/calls", answer({"calls": []}))
    assert "No calls are kept" in invoke("calls").stderr
    platform.will("GET", "/v1/calls", answer(KEPT_CALLS))
    assert json.loads(invoke("calls", "--json").stdout) == KEPT_CALLS
