"""`pilotlight model`: what is printed."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from pilotlight.cli.main import app
from tests.sdk.scripted import ScriptedPlatform, answer

TINY = {"id": "acme/tiny", "object": "model", "created": 0, "owned_by": "acme", "function": "shop.tells"}


def test_models_are_listed_with_their_functions(platform: ScriptedPlatform) -> None:
    """And adapters with what they are on."""
    adapter = TINY | {"id": "acme/tiny:fr", "parent": "acme/tiny"}
    platform.will("GET", "/v1/models", answer({"object": "list", "data": [TINY, adapter]}))
    shown = CliRunner().invoke(app, ["model", "list"]).output
    told = json.loads(CliRunner().invoke(app, ["model", "list", "--json"]).stdout)

    assert "acme/tiny:fr" in shown
    assert "shop.tells" in shown
    assert told == [TINY, adapter]


def test_without_models_it_says_how_to_have_one(platform: ScriptedPlatform) -> None:
    """By the option of a function."""
    platform.will("GET", "/v1/models", answer({"object": "list", "data": []}))
    assert 'serves="acme/tiny"' in CliRunner().invoke(app, ["model", "list"]).output
