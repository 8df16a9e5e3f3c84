"""`pilotlight events`."""

from __future__ import annotations

import json

from tests.sdk.cli.seeing_answers import EVENTS
from tests.sdk.cli.shell import invoke
from tests.sdk.scripted import ScriptedPlatform, answer


def test_events_are_shown_a_line_each(platform: ScriptedPlatform) -> None:
    platform.will("GET", "/v1/events", answer(EVENTS))
    shown = invoke("events", "--since", "1h", "--kind", "function").stdout

    assert "function.scaled" in shown
    assert "acme: hello.greet should have 2 containers" in shown
    assert "since=1h" in platform.requests[-1].query


def test_events_are_json_for_machines(platform: ScriptedPlatform) -> None:
    platform.will("GET", "/v1/events", answer(EVENTS))
    assert json.loads(invoke("events", "--json").stdout) == EVENTS


def test_nothing_happened_is_said(platform: ScriptedPlatform) -> None:
    platform.will("GET", "/v1/events", answer({"events": []}))
    assert "Nothing happened in the last 2h." in invoke("events", "--since", "2h").stderr
