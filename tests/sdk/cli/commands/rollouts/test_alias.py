"""Commands about aliases."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pilotlight.cli.main import app
from tests.sdk.cli.rollout_answers import ALIAS
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

PATH = "/v1/apps/hello/aliases/greet/prod"


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["alias", *words])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_an_alias_is_set(platform: ScriptedPlatform) -> None:
    """As callers write it; the answer says which version that is."""
    platform.will("PUT", PATH, answer(ALIAS))

    assert run("set", "hello.greet@prod", "v1") == "hello.greet@prod is hello.greet@v1 from now on.\n"
    assert platform.requests[0].json == {"version": "v1"}


def test_aliases_are_listed(platform: ScriptedPlatform) -> None:
    """Also those of what was rolled back, which still runs for them."""
    platform.will("GET", "/v1/apps/hello/aliases", answer({"aliases": [ALIAS, ALIAS | {"withdrawn": True}]}))
    listed = run("list", "hello")

    assert "hello.greet@prod" in listed
    assert "rolled back" in listed


def test_an_alias_is_deleted(platform: ScriptedPlatform) -> None:
    """By the same word."""
    platform.will("DELETE", PATH, Answer(status=204))

    assert run("delete", "hello.greet@prod") == "Deleted hello.greet@prod.\n"


@pytest.mark.parametrize("alias", ["hello.greet", "acme:hello.greet@prod"])
def test_an_alias_is_of_a_function_of_ones_own(platform: ScriptedPlatform, alias: str) -> None:
    """The error shows how one looks."""
    done = CliRunner().invoke(app, ["alias", "set", alias, "v1"])

    assert done.exit_code != 0
    assert "app.function@alias" in done.stderr
    assert platform.requests == []
