"""`pilotlight explain`: sentences for people, JSON for scripts."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs

import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.commands.scaling.explain import moment
from pilotlight.cli.main import app
from pilotlight.definitions.errors import BadInput
from tests.sdk.cli.seeing_answers import EXPLAINED_CALL, JOB
from tests.sdk.scripted import ScriptedPlatform, answer

TOLD: dict[str, Any] = {"lines": ["It wants 2 containers (calls), for 3 s: 2 calls run."], "changes": []}
ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 5, 4, 15, 30, 10, tzinfo=ZONE)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["explain", *words])


def test_a_function_is_explained_line_by_line(platform: ScriptedPlatform) -> None:
    """Or as data."""
    platform.will("GET", "/v1/functions/search.embed/explanation", answer(TOLD))

    assert run("search.embed").stdout.splitlines() == TOLD["lines"]
    assert json.loads(run("search.embed", "--json").stdout) == TOLD
    assert platform.requests[0].query == ""


def test_an_instant_is_sent_with_its_zone(platform: ScriptedPlatform) -> None:
    """Whatever the zone of the platform."""
    platform.will("GET", "/v1/functions/search.embed/explanation", answer(TOLD))
    run("search.embed", "--at", "2026-05-04T08:00:00+02:00")
    assert parse_qs(platform.requests[0].query) == {"at": ["2026-05-04T08:00:00+02:00"]}


def test_advice_is_asked_for(platform: ScriptedPlatform) -> None:
    """Of a controller that does nothing itself."""
    platform.will("GET", "/v1/functions/search.embed/explanation", answer(TOLD))
    assert run("search.embed", "--advised").stdout.splitlines() == TOLD["lines"]
    assert parse_qs(platform.requests[0].query) == {"advised": ["true"]}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("10m", "2026-05-04T15:20:10+02:00"),
        ("1d", "2026-05-03T15:30:10+02:00"),
        ("14:05", "2026-05-04T14:05:00+02:00"),
        ("2026-05-04T08:00:00", "2026-05-04T08:00:00+02:00"),
        ("2026-05-04T08:00:00Z", "2026-05-04T08:00:00+00:00"),
    ],
)
def test_each_way_to_say_an_instant(text: str, meant: str) -> None:
    """Without a zone it is the user's own."""
    assert moment(text, NOW) == meant


@pytest.mark.parametrize("text", ["soon", "25:00", "999999d", "10x"])
def test_what_means_no_instant_is_refused(text: str) -> None:
    """With what is expected."""
    with pytest.raises(BadInput, match="--at"):
        moment(text, NOW)


def test_a_call_is_explained_by_its_id(platform: ScriptedPlatform) -> None:
    """Or a request that was refused; a function may be called so too, in an app."""
    platform.will("GET", f"/v1/calls/{JOB}/explanation", answer(EXPLAINED_CALL))
    assert run(JOB).stdout.splitlines()[0] == EXPLAINED_CALL["sentences"][0]
    assert json.loads(run(JOB, "--json").stdout)["id"] == JOB
    platform.will("GET", "/v1/functions/call_center.embed/explanation", answer(TOLD))
    assert run("call_center.embed").stdout.splitlines() == TOLD["lines"]
